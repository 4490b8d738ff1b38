// The model tab: errors, coverage, training, schedules and options.

const WINDOWS = {
  new: ["", (n) => `Measured on ${counted(n, "window")} that lie after the training data: the model has not seen them.`],
  "held out": ["warn", (n) => `Measured on ${counted(n, "window")} held out of training. The same windows chose the weights and calibrated the intervals, so errors on new data may be a little larger.`],
  training: ["warn", (n) => `Measured on ${counted(n, "window")} that were in the training data: these errors say nothing about new data. Use newer data to measure accuracy.`],
};

function drawModel() {
  const page = byId("model");
  const { errors, schedules, training, autoConfig, options } = DATA.model;
  const parts = [];
  if (errors) {
    const [kind, text] = WINDOWS[errors.kind];
    parts.push(element("p", { class: `card notice ${kind}` }, text(errors.windows)));
  } else {
    parts.push(element("p", { class: "card notice warn" }, "The data has no actual values for a whole forecast window, so no errors can be measured."));
  }
  parts.push(keyNumbers());
  const cards = [
    card("Error by step of the horizon", "Mean absolute error, in standard deviations of each series", errors && errorChart(errors)),
    card("Coverage of the intervals", "Share of actual values inside the interval, by step; dotted lines are the nominal levels", errors && errors.coverage.length && coverageChart(errors)),
    card("Calibration", "Share of actual values inside the interval of each level, over all steps; well calibrated intervals lie on the dotted line", errors && errors.calibration.length && calibrationChart(errors)),
    card("Training", "Training loss, and mean absolute error on held-out windows", training.losses.length && trainingCharts(training)),
    card("Scales and leaps", "Over all forecasts in this report", schedules && scheduleCharts(schedules)),
    card("Options chosen automatically", "From the data, because they were not given", autoConfig.length && table(["option", "value", "reason"], autoConfig, "stacked")),
    card("Model options", `${counted(DATA.model.parameters, "parameter")}`, table(["option", "value"], options)),
  ];
  parts.push(element("div", { class: "cards" }, ...cards));
  page.replaceChildren(...parts);
}

function card(title, about, contents, kind = "") {
  const head = element("div", { class: "card-head" }, element("h2", {}, title), element("p", { class: "muted" }, about));
  const inside = contents || [element("p", { class: "none" }, "Nothing to show.")];
  return element("article", { class: `card ${kind}` }, head, ...[inside].flat());
}

function keyNumbers() {
  const { errors, schedules, training } = DATA.model;
  const facts = [["look-back and horizon", `${DATA.lookback} → ${DATA.h}`, `steps, frequency ${DATA.freq}`]];
  if (errors) {
    const [ours, last] = [mean(errors.final), mean(errors.naive)];
    facts.push(["mean absolute error", ours.toFixed(3), last > 0 ? `standard deviations; naive forecast: ${last.toFixed(3)}` : "standard deviations"]);
    errors.coverage.forEach((shares, i) => facts.push([`inside the ${DATA.levels[i]} % interval`, percent(mean(shares), 1), `of ${counted(errors.windows * DATA.h, "value")}`]));
    if (errors.wql !== null) facts.push(["weighted quantile loss", errors.wql.toFixed(3), "CRPS over the mean absolute value"]);
  } else if (training.validation !== null) facts.push(["held-out error", training.validation.toFixed(3), "standard deviations"]);
  if (schedules) {
    const forecasts = schedules.counts.reduce((sum, [, n]) => sum + n, 0);
    const leaps = schedules.leaps.reduce((sum, n) => sum + n, 0);
    facts.push(["leaps per forecast", (leaps / forecasts).toFixed(2), `${counted(leaps, "leap")} in ${counted(forecasts, "forecast")}`]);
    facts.push(["gate", DATA.gate.toFixed(3), "weight of the leaps in the forecast"]);
  }
  return element("dl", { class: "numbers" }, ...facts.map(([name, value, note]) => element("div", { class: "card" },
    element("dt", {}, name), element("dd", {}, value, element("small", {}, note)))));
}

const bySteps = (values) => values.map((value, i) => [i + 1, value]);

function errorChart(errors) {
  const lines = [
    { name: "forecast", points: bySteps(errors.final), kind: "final c0", fill: "f0" },
    { name: "naive forecast (last value)", points: bySteps(errors.naive), kind: "final c2", fill: "f2" },
  ];
  if (DATA.gate !== null) lines.splice(1, 0, { name: "coarse forecast alone", points: bySteps(errors.coarse), kind: "final c1 dash", fill: "f1" });
  return lineChart({ title: "Error by step of the horizon", x: "step", lines, floor: 0 });
}

function coverageChart(errors) {
  const color = (i) => [3, 0, 2][i % 3];
  const lines = errors.coverage.map((shares, i) => ({ name: `${DATA.levels[i]} % interval`, points: bySteps(shares), kind: `final c${color(i)}`, fill: `f${color(i)}` }));
  const aims = DATA.levels.map((level, i) => ({ value: level / 100, kind: `c${color(i)}` }));
  return lineChart({ title: "Coverage by step of the horizon", x: "step", lines, aims, ceiling: 1, yText: (value) => percent(value) });
}

function calibrationChart(errors) {
  const lines = [
    { name: "observed share", points: errors.calibration, kind: "final c0", fill: "f0" },
    { name: "nominal level", points: errors.calibration.map(([level]) => [level, level / 100]), kind: "final c1 dash", fill: "f1" },
  ];
  return lineChart({ title: "Observed share by nominal level", x: "nominal level, %", lines, floor: 0, ceiling: 1, yText: (value) => percent(value) });
}

function trainingCharts(training) {
  const best = { at: training.best, text: `best, step ${training.best.toLocaleString("en")}` };
  const loss = { name: `training loss (${DATA.model.loss})`, points: training.losses, kind: "loss c1", fill: "f1" };
  if (!training.validations.length) return lineChart({ title: "Training loss", x: "step", lines: [loss] });
  const held = { name: "held-out mean absolute error", points: training.validations, kind: "loss c0", fill: "f0" };
  return [
    ...lineChart({ title: "Error on held-out windows while training", x: "step", lines: [held], mark: best, height: 170 }),
    ...lineChart({ title: "Training loss", x: "step", lines: [loss], height: 150 }),
  ];
}

function scheduleCharts(schedules) {
  const stack = (counts, what) => {
    const all = counts.reduce((sum, n) => sum + n, 0);
    const told = SCALES.map((scale, i) => `${scale} ${percent(counts[i] / all)}`).join(", ");
    const bar = element("div", { class: "stack", role: "img", "aria-label": `${what}: ${told}` }, ...SCALES.flatMap((scale, i) => {
      if (!counts[i]) return [];
      const share = counts[i] / all;
      const part = element("span", { class: `scale-${scale}`, title: `${scale}: ${percent(share, 1)}` }, share > 0.2 ? `${scale} ${percent(share)}` : share > 0.08 ? percent(share) : "");
      part.style.flexGrow = String(counts[i]);
      return [part];
    }));
    return [element("p", { class: "muted" }, what), bar];
  };
  return [
    ...stack(schedules.leaps, "share of each scale among leaps"),
    ...stack(schedules.steps, "share of each scale among steps of the horizon"),
    element("p", { class: "muted" }, "forecasts by number of leaps"),
    barChart(schedules.counts),
    element("p", { class: "muted" }, `On average ${percent(schedules.control)} of the change of state is due to the control signal, the rest to elapsed time.`),
  ];
}

function barChart(counts) {
  const holder = element("div", { class: "plot" });
  const all = counts.reduce((sum, [, n]) => sum + n, 0);
  const height = 150;
  const draw = () => {
    const width = holder.clientWidth || 400;
    const most = Math.max(...counts.map(([, n]) => n));
    const each = Math.min(90, (width - 10) / counts.length);
    const toY = scaleFrom(0, most, height - 24, 20);
    const told = counts.map(([leaps, n]) => `${counted(leaps, "leap")}: ${n}`).join(", ");
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `Forecasts by number of leaps: ${told}` });
    counts.forEach(([leaps, n], i) => {
      const x = 5 + i * each;
      svg.append(
        shape("rect", { class: "bar", x: x + each * 0.12, width: each * 0.76, y: toY(n), height: height - 24 - toY(n), rx: 3 }),
        shape("text", { x: x + each / 2, y: height - 7, "text-anchor": "middle" }, String(leaps)),
      );
      if (each > 34) svg.append(shape("text", { class: "bar-text", x: x + each / 2, y: toY(n) - 6, "text-anchor": "middle" }, percent(n / all)));
    });
    holder.replaceChildren(svg);
  };
  new ResizeObserver(draw).observe(holder);
  return holder;
}

function table(columns, rows, kind = "") {
  return element("div", { class: "scroll" }, element("table", { class: kind },
    element("thead", {}, element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell) => element("td", {}, cell)))))));
}
