import torch

torch.set_num_threads(1)  # the tests' networks are too small for more, and other tests want the cores
