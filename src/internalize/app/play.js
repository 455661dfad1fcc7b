// The playground: asks the server, and shows what the models write as they write it.
"use strict";

const one = (selector, inside = document) => inside.querySelector(selector);
const make = (tag, text = "", kind = "") => Object.assign(document.createElement(tag), { textContent: text, className: kind });
const PAUSE = 180; // milliseconds between tokens in slow motion

class Mistake extends Error {} // what the server says of the input

async function post(path, body, signal) {
  const answer = await fetch("/api/" + path, {
    method: "POST",
    signal,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Mistake((await answer.json()).error);
  return answer;
}

async function* lines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    const parts = (text + (value ?? "")).split("\n");
    text = parts.pop();
    for (const part of parts) {
      const line = JSON.parse(part);
      if (line.error) throw new Mistake(line.error);
      yield line;
    }
    if (done) return;
  }
}

const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
const percent = (value) => (100 * value).toFixed(1) + " %";

// A token; what is right or wrong is also said in words.
function token(piece) {
  const text = piece.text.replaceAll("\n", "\u23ce") || "\u220e"; // a line end, and the end
  const mark = make("span", text, "token" + (piece.answer ? " answer" : ""));
  if (piece.right !== null) mark.classList.add(piece.right ? "right" : "wrong");
  const verdict = piece.right === null ? "" : piece.right ? ", right" : ", wrong";
  mark.title = (piece.answer ? "answer" : "chain") + verdict;
  return mark;
}

function verdict(told) {
  if (told.answer === null) return "It gave no answer.";
  if (told.truth === null) return `Its answer: ${told.answer}. ${told.note}`;
  return told.right ? `Right: ${told.answer}.` : `Wrong: it says ${told.answer}, right is ${told.truth}.`;
}

// One run and all that is shown of it.
class Panel {
  constructor(index, about) {
    this.index = index;
    this.about = about;
    this.answers = []; // at each place of the slider, for the input that was asked last
    this.section = one("#run").content.cloneNode(true).firstElementChild;
    const title = `run-${index}`;
    one("h2", this.section).textContent = about.name;
    one("h2", this.section).id = title;
    this.section.setAttribute("aria-labelledby", title);
    one(".about", this.section).textContent = about.about;
    this.problem = one(".problem", this.section);
    const last = about.places.length - 1;
    this.systems = last ? [[".slow", 0], [".fast", last]] : [[".fast", 0]];
    for (const [kind, at] of this.systems) one(kind + " h3", this.section).textContent = this.title(at);
    if (!last) one(".slow", this.section).remove();
    this.slider = one("input", this.section);
    this.slider.max = last;
    this.slider.disabled = !last;
    this.slider.addEventListener("input", () => this.show(this.slider.valueAsNumber));
    this.strip = one(".strip", this.section);
    about.places.forEach((place, at) => {
      const cell = make("button", place.shown);
      cell.type = "button";
      cell.addEventListener("click", () => this.show(at));
      this.strip.append(cell);
    });
    one(".find", this.section).addEventListener("click", () => this.find());
    one("#runs").append(this.section);
    this.show(last);
  }

  length(at) {
    const { shown } = this.about.places[at];
    return shown ? plural(shown, this.about.unit) + " first" : "no chain";
  }

  title(at) {
    const { shown } = this.about.places[at];
    return shown ? `Slow: ${plural(shown, this.about.unit)}, then the answer` : "Fast: the answer at once";
  }

  clear() {
    this.problem.textContent = "";
    this.answers = [];
    for (const shown of this.section.querySelectorAll(".system .written, .system .cost")) shown.textContent = "";
    for (const cell of this.strip.children) cell.className = "";
    this.show(this.at);
  }

  async ask(text, slowly, signal) {
    try {
      // One after the other, and the fast one first, so that each has the machine for itself while it is timed.
      for (const [kind, at] of [...this.systems].reverse()) await this.write(kind, at, text, slowly, signal);
      await this.every(text, signal);
    } catch (error) {
      if (!signal.aborted) this.problem.textContent = told(error);
    }
  }

  // Ends when the model has written all; what it wrote is shown at its own pace.
  async write(kind, place, text, slowly, signal) {
    const [written, cost] = [".written", ".cost"].map((name) => one(`${kind} ${name}`, this.section));
    let shown = Promise.resolve();
    for await (const line of lines(await post("ask", { run: this.index, place, text }, signal))) {
      shown = shown.then(async () => {
        if (slowly) await new Promise((go) => setTimeout(go, PAUSE));
        if (signal.aborted) return;
        if (line.kind === "token") written.append(token(line));
        else cost.textContent = `${verdict(line)} ${plural(line.tokens, "token")} in ${+(1000 * line.seconds).toPrecision(2)} ms.`;
      });
    }
  }

  async every(text, signal) {
    for await (const line of lines(await post("places", { run: this.index, text }, signal))) {
      this.answers[line.place] = line;
      if (line.right !== null) this.strip.children[line.place].className = line.right ? "right" : "wrong";
      this.show(this.at);
    }
  }

  show(at) {
    this.at = at;
    this.slider.value = at;
    const place = this.about.places[at];
    const where = `Stage ${place.stage}: ${this.length(at)}`;
    one(".where", this.section).textContent = where;
    this.slider.setAttribute("aria-valuetext", where);
    [...this.strip.children].forEach((cell, index) => {
      cell.setAttribute("aria-pressed", index === at);
      const answer = this.answers[index];
      const said = answer ? verdict(answer) : "not asked";
      cell.setAttribute("aria-label", `${this.length(index)}: ${said}`);
      cell.title = `${this.length(index)}: ${said}`;
    });
    const answer = this.answers[at];
    const box = one(".at", this.section);
    box.textContent = "";
    if (answer) {
      for (const piece of answer.pieces) box.append(token(piece));
      box.append(make("span", " " + verdict(answer), answer.right === null ? "" : answer.right ? "right" : "wrong"));
    }
    const measured = Object.entries(place.accuracy).map(([split, value]) => `${split} ${percent(value)}`);
    one(".measured", this.section).textContent = measured.length ? `Right on the test inputs: ${measured.join(", ")}.` : "";
  }

  async find() {
    const [button, said, table] = [".find", ".found", "table"].map((name) => one(name, this.section));
    const place = this.at;
    const split = one("#split").value;
    button.disabled = true;
    said.textContent = "Asking ...";
    table.hidden = true;
    try {
      const found = await (await post("failures", { run: this.index, place, split })).json();
      said.textContent = `With ${this.length(place)}, ${found.wrong} of ${found.asked} test inputs (${split}) are answered wrongly.`;
      const rows = one("tbody", table);
      rows.textContent = "";
      for (const [text, right, answer] of found.shown) {
        const row = make("tr");
        for (const cell of [text, right, answer]) row.append(make("td"));
        [text, right, answer].forEach((cell, at) => row.children[at].append(make("code", cell)));
        const take = make("button", "ask");
        take.type = "button";
        take.setAttribute("aria-label", "Ask " + text);
        take.addEventListener("click", () => {
          one("#text").value = text;
          one("#ask").requestSubmit();
        });
        row.append(make("td"));
        row.lastChild.append(take);
        rows.append(row);
      }
      table.hidden = !found.shown.length;
    } catch (error) {
      said.textContent = told(error);
    }
    button.disabled = false;
  }
}

function told(error) {
  return error instanceof Mistake ? error.message : "The playground does not answer; is it still running?";
}

async function start() {
  const runs = await (await fetch("/api/runs")).json();
  const panels = runs.map((about, index) => new Panel(index, about));
  const splits = [...new Set(runs.flatMap((about) => about.splits))];
  one("#split").append(...splits.map((split) => make("option", split)));
  one("#split").disabled = one("#draw").disabled = !splits.length;
  for (const panel of panels) one(".find", panel.section).disabled = !panel.about.splits.length;
  const problem = one("#problem");
  let asking = new AbortController(); // a new question stops the one before it, here and on the server
  const ask = async () => {
    asking.abort();
    const { signal } = (asking = new AbortController());
    problem.textContent = "";
    const [text, slowly] = [one("#text").value, one("#slowly").checked];
    for (const panel of panels) panel.clear();
    for (const panel of panels) if (!signal.aborted) await panel.ask(text, slowly, signal);
  };
  one("#ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  one("#draw").addEventListener("click", async () => {
    try {
      const split = one("#split").value;
      const run = runs.findIndex((about) => about.splits.includes(split));
      one("#text").value = (await (await post("draw", { run, split })).json()).text;
      problem.textContent = "";
      await ask();
    } catch (error) {
      problem.textContent = told(error);
    }
  });
  if (splits.length) one("#draw").click();
}

start().catch((error) => (one("#problem").textContent = told(error)));
