// How it learns: losses, the learning rate, the bias correction.

import { lineChart } from "./chart.js";
import { byId, setText } from "./dom.js";
import { significant } from "./words.js";

export function startLearning() {
  const losses = lineChart(byId("loss-chart"), { label: "Loss of new and of replayed examples", format: (value) => significant(value, 3) });
  const rate = lineChart(byId("rate-chart"), { label: "Learning rate", format: (value) => significant(value, 2) });
  return {
    show({ status, history }) {
      setText(byId("bias-words"), biasWords(status.bias));
      if (!history) return;
      const x = history.examples;
      losses.update({
        x,
        series: [
          { name: "stream", label: "new examples", class: "s-stream", values: history.loss.stream },
          { name: "replay", label: "replayed", class: "s-replay", values: history.loss.replay },
        ],
      });
      rate.update({ x, series: [{ name: "rate", label: "learning rate", class: "s-rate", values: history.learning_rate }] });
    },
  };
}

function biasWords({ version, group, alpha, beta }) {
  if (!version) return "Not fitted yet: that happens when a group of classes is complete.";
  const shift = `${beta < 0 ? "−" : "+"} ${significant(Math.abs(beta))}`;
  return `Scores of ${group ?? "the newest group"} are taken × ${significant(alpha)} ${shift} (α, β), fitted on the buffer so that the newest classes are not named too often. Version ${version}.`;
}
