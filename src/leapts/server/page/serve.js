"use strict";
// A table goes to the server and comes back as a report. Text of the table only ever goes in as text.
(() => {
const byId = (id) => document.getElementById(id);
const PREVIEW = 65536;
const ROWS = 4;
let models = [];
let file = null;
let columns = [];
let report = null;
let address = null;

function element(tag, text, attributes = {}) {
  const node = document.createElement(tag);
  node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

async function ask(path, options = {}) {
  const token = byId("token").value.trim();
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch {
    throw new Error("The server did not answer. Is it still running?");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) byId("entry").hidden = false;
  let problem = {};
  try { problem = await answer.json(); } catch { /* not from this server */ }
  throw new Error(problem.detail ? `${capital(problem.detail)}. Hint: ${problem.hint}.` : `The server answered ${answer.status}.`);
}
const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

function complain(error) {
  byId("problem").textContent = error ? error.message : "";
  byId("problem").hidden = !error;
}

async function attempt(saying, work) {
  complain(null);
  byId("working").textContent = saying;
  byId("forecast").disabled = true;
  try { await work(); } catch (error) { complain(error); }
  byId("working").textContent = "";
  byId("forecast").disabled = false;
}

async function loadModels() {
  models = (await (await ask("/v1/models")).json()).models;
  byId("entry").hidden = true;
  byId("model").replaceChildren(...models.map((model) => element("option", `${model.name} (${model.h} steps, ${model.freq})`, { value: model.name })));
  if (columns.length) guess();
}
const chosenModel = () => models.find((model) => model.name === byId("model").value) ?? models[0];

// The first rows, as far as they are needed to choose columns; the server reads the whole of it.
function parsed(text) {
  const head = text.replace(/^\uFEFF/, "");
  const line = head.split(/\r?\n/, 1)[0].replace(/"(?:[^"]|"")*("|$)/g, "");
  const separator = [",", ";", "\t", "|"].reduce((best, one) => (line.split(one).length > line.split(best).length ? one : best));
  const rows = [[]];
  let cell = "";
  let quoted = false;
  for (let i = 0; i < head.length && rows.length <= ROWS + 1; i++) {
    const letter = head[i];
    if (quoted) {
      if (letter !== '"') cell += letter;
      else if (head[i + 1] === '"') { cell += '"'; i++; } else quoted = false;
    } else if (letter === '"') quoted = true;
    else if (letter === separator) { rows[rows.length - 1].push(cell); cell = ""; } else if (letter === "\n") {
      rows[rows.length - 1].push(cell.replace(/\r$/, ""));
      cell = "";
      rows.push([]);
    } else cell += letter;
  }
  if (cell) rows[rows.length - 1].push(cell);
  return rows.filter((row) => row.length).slice(0, ROWS + 1);
}

async function take(chosen) {
  if (!chosen) return;
  file = chosen;
  byId("file-name").textContent = file.name;
  byId("file-about").textContent = `${file.size.toLocaleString("en")} bytes`;
  byId("result").hidden = true;
  complain(null);
  const rows = parsed(await file.slice(0, PREVIEW).text());
  columns = (rows[0] ?? []).map((name) => name.trim());
  if (columns.length < 2) {
    byId("choices").hidden = true;
    complain(new Error("This is no table: its first line needs at least two columns, parted by commas."));
    return;
  }
  const shown = columns.slice(0, 12);
  const head = document.createElement("tr");
  head.append(...shown.map((name) => element("th", name)));
  const body = rows.slice(1).map((row) => {
    const line = document.createElement("tr");
    line.append(...shown.map((_, i) => element("td", row[i] ?? "")));
    return line;
  });
  byId("preview").replaceChildren(head, ...body);
  byId("choices").hidden = false;
  guess();
}

function fill(id, options, chosen) {
  byId(id).replaceChildren(...options.map(([value, text]) => element("option", text, { value })));
  byId(id).value = chosen;
}

// Columns go by their place, so that no name has to be told from the choice that there is none.
function guess() {
  const model = chosenModel() ?? {};
  const every = columns.map((name, i) => [String(i), name]);
  const at = (name, usual) => {
    const place = columns.indexOf(name);
    return place >= 0 ? place : columns.findIndex((column) => usual.test(column));
  };
  const time = Math.max(0, at(model.time_col, /^(ds|dates?|time|timestamp|datetime|day|month|year)$/i));
  const series = at(model.id_col, /^(unique_id|id|series|name)$/i);
  let value = at(model.target_col, /^(y|values?|target)$/i);
  // Without a column of names a table with a column of values is one series, whatever else it holds.
  const unnamed = value < 0 ? "wide" : "one";
  if (value < 0) value = columns.findIndex((_, i) => i !== time && i !== series);
  fill("time", every, String(time));
  const layouts = [["one", "a single one"], ["wide", "one column each"]];
  fill("series", [...layouts, ...every], series < 0 ? unnamed : String(series));
  fill("value", every, String(value));
  byId("value-label").hidden = byId("series").value === "wide";
}

function query() {
  const name = (id) => columns[Number(byId(id).value)];
  const asked = new URLSearchParams({ model: chosenModel().name, time_col: name("time") });
  const series = byId("series").value;
  asked.set("layout", series === "wide" ? "wide" : "long");
  if (series !== "wide") asked.set("target_col", name("value"));
  if (series !== "wide" && series !== "one") asked.set("id_col", name("series"));
  return asked;
}

const send = (path, asked) => ask(`${path}?${asked}`, { method: "POST", headers: { "Content-Type": "text/csv" }, body: file });

const forecast = () => attempt("Forecasting ...", async () => {
  byId("result").hidden = true;
  if (!models.length) await loadModels();
  const page = await (await send("/v1/report", query())).text();
  const data = new DOMParser().parseFromString(page, "text/html").getElementById("data");
  report = new Blob([page], { type: "text/html" });
  if (address) URL.revokeObjectURL(address);
  address = URL.createObjectURL(report);
  // What comes next is what was asked for, so the last cutoff is shown first.
  byId("view").src = `${address}#series=0&cutoff=${JSON.parse(data.textContent).afters.length - 1}`;
  byId("result").hidden = false;
  byId("result").scrollIntoView({ block: "start" });
});

const downloadCsv = () => attempt("Forecasting ...", async () => {
  const asked = query();
  for (const level of chosenModel().levels) asked.append("level", level);
  asked.set("escape_formulas", "true"); // people open the download in a spreadsheet
  save(await (await send("/v1/forecast/csv", asked)).blob(), "forecast.csv");
});

function save(blob, name) {
  const link = element("a", "", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

byId("file").addEventListener("change", (event) => take(event.target.files[0]));
for (const kind of ["dragover", "dragleave", "drop"]) {
  byId("drop").addEventListener(kind, (event) => {
    event.preventDefault();
    byId("drop").classList.toggle("over", kind === "dragover");
    if (kind === "drop") take(event.dataTransfer.files[0]);
  });
}
byId("series").addEventListener("change", () => { byId("value-label").hidden = byId("series").value === "wide"; });
byId("model").addEventListener("change", guess);
byId("forecast").addEventListener("click", forecast);
byId("get-csv").addEventListener("click", downloadCsv);
byId("get-report").addEventListener("click", () => save(report, "report.html"));
byId("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt("", loadModels);
});
attempt("", loadModels).then(() => { if (!byId("entry").hidden) complain(null); });
})();
