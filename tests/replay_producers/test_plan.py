from __future__ import annotations

import numpy as np
import pytest

from replay_producers.datasets import DataSet
from replay_producers.datasets.fashion_mnist import read_fashion_mnist
from replay_producers.plan import Options, plan
from replay_producers.sequence import Sequence
from streamlearn.errors import SettingsError


@pytest.fixture(scope="module")
def sample() -> DataSet:
    return read_fashion_mnist(None)


def test_the_papers_tasks_in_their_order(sample: DataSet) -> None:
    tasks = plan(sample, Options())
    assert [task.classes for task in tasks] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    for number, task in enumerate(tasks):
        assert set(sample.train.labels[task.train]) == set(task.classes)
        assert sorted(task.train) == np.flatnonzero(np.isin(sample.train.labels, task.classes)).tolist()
        assert len(task.test) == 100 * (number + 1)
        assert set(sample.test.labels[task.test]) == {output for task in tasks[: number + 1] for output in task.classes}


def test_a_seed_decides_the_order_and_nothing_else(sample: DataSet) -> None:
    one, same, other = plan(sample, Options()), plan(sample, Options()), plan(sample, Options(seed=1))
    for task, again, differently in zip(one, same, other, strict=True):
        assert (task.train == again.train).all()
        assert (task.train != differently.train).any()
        assert sorted(task.train) == sorted(differently.train)


def test_every_pass_is_mixed_anew(sample: DataSet) -> None:
    (task, *_) = plan(sample, Options(epochs=3))
    first, second, third = np.split(task.train, 3)
    assert sorted(first) == sorted(second) == sorted(third)
    assert (first != second).any()
    assert (second != third).any()


def test_a_limit_is_spread_over_the_classes(sample: DataSet) -> None:
    tasks = plan(sample, Options(limit=25))
    learned = np.concatenate([task.train for task in tasks])
    assert len(learned) == 25
    assert sorted(np.bincount(sample.train.labels[learned], minlength=10).tolist()) == [2] * 5 + [3] * 5
    assert len(tasks[-1].test) == 25


def test_class_order_and_tasks(sample: DataSet) -> None:
    tasks = plan(sample, Options(class_order="9,8,7,6,Sandal,Coat,3,2,1,0", tasks="4,3,3"))
    assert [task.classes for task in tasks] == [(9, 8, 7, 6), (5, 4, 3), (2, 1, 0)]
    assert [len(task.classes) for task in plan(sample, Options(tasks="2"))] == [5, 5]
    shuffled = [task.classes for task in plan(sample, Options(class_order="shuffled", seed=3))]
    assert sorted(output for classes in shuffled for output in classes) == list(range(10))
    assert shuffled != [task.classes for task in plan(sample, Options(class_order="shuffled", seed=4))]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Options(class_order="0,1,hat"), "no class 'hat'"),
        (Options(class_order="0,1"), "leaves out"),
        (Options(class_order="0,0,1,2,3,4,5,6,7,8,9"), "twice"),
        (Options(tasks="3"), "do not make 3 equal tasks"),
        (Options(tasks="4,4"), "is 8 classes"),
        (Options(tasks="many"), "expected a number of tasks"),
        (Options(tasks="0"), "expected a number of tasks"),
    ],
)
def test_options_that_make_no_sense(sample: DataSet, options: Options, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        plan(sample, options)


@pytest.mark.parametrize("options", [Options(limit=40), Options(limit=40, groups="discovered", evaluate=False)])
def test_records_from_any_place_on(sample: DataSet, options: Options) -> None:
    sequence = Sequence(sample, options)
    everything = list(sequence.records())
    assert len(everything) == len(sequence)
    assert [sequence.number_of(record) for record in everything] == list(range(len(sequence)))
    for start in range(len(sequence) + 1):
        rest = [(record.value, record.headers) for record in sequence.records(start)]
        assert rest == [(record.value, record.headers) for record in everything[start:]]


def test_other_options_make_another_run(sample: DataSet) -> None:
    runs = {
        Sequence(sample, options).run for options in (Options(), Options(seed=1), Options(limit=9), Options(epochs=2))
    }
    assert len(runs) == 4
