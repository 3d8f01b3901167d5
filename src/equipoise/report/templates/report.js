"use strict";
(() => {
  for (const element of document.querySelectorAll("[data-script]")) element.hidden = false;

  const root = document.documentElement;
  const theme = document.getElementById("theme");
  theme.value = "auto";
  theme.addEventListener("change", () => {
    if (theme.value === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme.value;
  });
  document.getElementById("print").addEventListener("click", () => window.print());

  const words = new Intl.Collator(undefined, { numeric: true });

  const value = (cell) => cell.dataset.value === "" ? null : Number(cell.dataset.value);

  // A missing number comes last, whichever way the column is sorted.
  const compareNumbers = (a, b, sign) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (x - y);
  };

  const makeSortable = (table) => {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const next = { none: "ascending", ascending: "descending", descending: "none" };
        const order = next[head.getAttribute("aria-sort")];
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", order);
        const rows = [...original];
        const sign = order === "descending" ? -1 : 1;
        if (order !== "none") rows.sort((p, q) => {
          const [a, b] = [p.cells[column], q.cells[column]];
          return head.dataset.kind === "number"
            ? compareNumbers(a, b, sign)
            : sign * words.compare(a.textContent, b.textContent);
        });
        body.append(...rows);
      });
    });
  };

  const makeFilter = (check) => {
    const rows = [...check.querySelectorAll("table.findings tbody tr")];
    const text = check.querySelector("[data-filter=text]");
    const decision = check.querySelector("[data-filter=decision]");
    const count = check.querySelector(".count");
    const show = () => {
      const parts = text.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const cell = row.cells[0];
        const group = `${cell.textContent} ${cell.dataset.group}`.toLocaleLowerCase();
        const fits = parts.every((part) => group.includes(part))
          && (!decision.value || row.dataset.decision === decision.value);
        row.hidden = !fits;
        shown += fits;
      }
      count.textContent = `${shown} of ${rows.length} shown`;
    };
    text.addEventListener("input", show);
    decision.addEventListener("change", show);
    show();
  };

  for (const table of document.querySelectorAll("table.findings")) makeSortable(table);
  for (const check of document.querySelectorAll(".check")) makeFilter(check);

  // On paper the first page is followed by a page for each of the first questions: its answer, its
  // figure and ten rows. Whole tables, figures taller than a page has room for, and further
  // questions, which the first page has answered too, follow in an annex.
  const ROWS = 10;
  const TALL = 1.3;
  const annex = document.getElementById("annex");
  const told = document.getElementById("on-paper");
  const moved = [];
  const append = (part) => {
    const place = document.createComment("");
    part.replaceWith(place);
    annex.append(part);
    moved.push([place, part]);
  };
  const copied = (part) => {
    const copy = part.cloneNode(true);
    copy.removeAttribute("id");
    copy.dataset.copy = "";
    return copy;
  };
  const firstRows = (table) => {
    const copy = copied(table);
    const rows = [...copy.tBodies[0].rows];
    const detected = (row) => "detected" in row.dataset;
    const ordered = [...rows.filter(detected), ...rows.filter((row) => !detected(row))];
    copy.tBodies[0].replaceChildren(...ordered.slice(0, ROWS));
    const details = [...copy.tHead.rows[0].cells].flatMap((cell, k) => ("detail" in cell.dataset ? [k] : []));
    for (const row of copy.rows) for (const k of [...details].reverse()) row.cells[k].remove();
    if (rows.length > ROWS) {
      copy.caption.append(`; ${ROWS} of ${rows.length} rows, detected ones first: all are in the annex`);
    }
    return copy;
  };
  window.addEventListener("beforeprint", () => {
    if (moved.length) return;
    const checks = [...document.querySelectorAll(".check")];
    // Four pages: many answers take a second one, and so does the summary of a bias audit.
    const taken = 1 + (checks.length > 7) + Boolean(document.getElementById("bias-audit"));
    const further = checks.slice(4 - taken);
    document.querySelector(".overview")?.classList.toggle("roomy", checks.length <= 3);
    for (const check of checks.slice(0, 4 - taken)) {
      annex.append(copied(check.querySelector("h3")));
      const rows = firstRows(check.querySelector("table.findings"));
      for (const part of check.querySelectorAll("figure, .evidence")) {
        const drawing = part.querySelector(".figure.wide");
        const { width, height } = drawing ? drawing.viewBox.baseVal : {};
        if (drawing && height <= TALL * width) continue;
        append(part);
        if (drawing) rows.caption.append("; the figure is in the annex, where it has room");
      }
      check.append(rows);
      check.classList.add("leaf");
    }
    for (const check of further) {
      const section = check.parentElement;
      append(check);
      section.hidden = !section.querySelector(".check");
    }
    told.hidden = !further.length;
    told.textContent = `On paper ${further.length} of the ${checks.length} questions have no page of`
      + " their own: their figures stand in the annex with all tables.";
    annex.hidden = !moved.length;
  });
  window.addEventListener("afterprint", () => {
    for (const [place, part] of moved.splice(0)) {
      place.replaceWith(part);
      part.parentElement.hidden = false;
    }
    for (const copy of document.querySelectorAll("[data-copy]")) copy.remove();
    for (const leaf of document.querySelectorAll(".leaf")) leaf.classList.remove("leaf");
    told.hidden = true;
    annex.hidden = true;
  });

  // Centred kernel of the generalized entropy index: at least zero, continuous in the order.
  const kernel = (x, order) => {
    if (Math.abs(order) < 1e-7) return x - 1 - Math.log(x);
    if (Math.abs(order - 1) < 1e-7) return x * Math.log(x) - x + 1;
    return (Math.expm1(order * Math.log(x)) - order * (x - 1)) / (order * (order - 1));
  };

  const index = (levels, order) => {
    const mean = levels.reduce((sum, [share, benefit]) => sum + share * benefit, 0);
    return levels.reduce(
      (sum, [share, benefit]) => sum + (share > 0 ? share * kernel(benefit / mean, order) : 0), 0,
    );
  };

  // P is the share of the protected class; u, v are the harmful and the benign error rate.
  const design = ({ kind, base_rate, kappa, minimum_benefit, order }) => {
    const P = kind === "punitive" ? 1 - base_rate : base_rate;
    const Q = 1 - P;
    const effective = kappa * Q / P;
    if (!(effective > 1)) return { needed: P / Q };
    const low = minimum_benefit;
    const high = 1 - (1 - low) / effective;
    const at = (u, v) => index([[P * u, low], [Q * (1 - v), high], [P * (1 - u) + Q * v, 1]], order);
    const corners = kappa >= 1 ? [[0, 0], [1, 0], [1, 1], [1 / kappa, 1]] : [[0, 0], [1, 0], [1, kappa]];
    const cap = Math.min(...corners.map(([u, v]) => at(u, v)));
    const mean = (u, v) => P * u * low + Q * (1 - v) * high + P * (1 - u) + Q * v;
    return { low, high, at, cap, mean, limit: P + Q * high };
  };

  const largestHarm = (scheme, kappa) => {
    let [inside, outside] = [0, Math.min(1, 1 / kappa)];
    for (let step = 0; step < 60; step += 1) {
      const middle = (inside + outside) / 2;
      if (scheme.at(middle, 1) < scheme.cap) inside = middle; else outside = middle;
    }
    return inside;
  };

  const written = (x) => {
    if (x === 0) return "0";
    return Math.abs(x) >= 1e-6 ? String(Number(x.toPrecision(3))) : x.toExponential(2);
  };

  const SIZE = 320;
  const [LEFT, TOP, SIDE] = [44, 10, 260];

  const draw = (drawing, scheme, { kind, kappa, fpr, fnr }) => {
    const node = (tag, attributes, text) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, entry] of Object.entries(attributes)) element.setAttribute(name, entry);
      if (text) element.textContent = text;
      return element;
    };
    const x = (rate) => LEFT + SIDE * rate;
    const y = (rate) => TOP + SIDE * (1 - rate);
    const cells = { allowed: "", capped: "" };
    const N = 90;
    const w = SIDE / N;
    for (let i = 0; i < N; i += 1) {
      for (let j = 0; j < N; j += 1) {
        const [p, n] = [(i + 0.5) / N, (j + 0.5) / N];
        const [u, v] = kind === "punitive" ? [p, n] : [n, p];
        const cell = `M${x(i / N).toFixed(1)} ${y((j + 1) / N).toFixed(1)}h${w}v${w}h${-w}z`;
        if (v > kappa * u) cells.allowed += cell;
        if (scheme.at(u, v) < scheme.cap) cells.capped += cell;
      }
    }
    const end = Math.min(1, 1 / kappa);
    const [lx, ly] = kind === "punitive" ? [end, kappa * end] : [kappa * end, end];
    const ticks = [0, 0.5, 1].flatMap((rate) => [
      node("text", { x: x(rate), y: TOP + SIDE + 16, "text-anchor": "middle" }, String(rate)),
      node("text", { x: LEFT - 6, y: y(rate) + 4, "text-anchor": "end" }, String(rate)),
    ]);
    drawing.replaceChildren(
      node("path", { class: "allowed", d: cells.allowed }),
      node("path", { class: "capped", d: cells.capped }),
      node("path", { class: "line", d: `M${x(0)} ${y(0)}L${x(lx)} ${y(ly)}` }),
      node("rect", { class: "axis", x: LEFT, y: TOP, width: SIDE, height: SIDE }),
      ...ticks,
      node("text", { x: LEFT + SIDE / 2, y: SIZE - 8, "text-anchor": "middle" }, "false positive rate"),
      node("text", { x: 12, y: TOP + SIDE / 2, "text-anchor": "middle",
        transform: `rotate(-90 12 ${TOP + SIDE / 2})` }, "false negative rate"),
      node("path", { class: "model", d: `M${x(fpr)} ${y(fnr) - 7}l7 7l-7 7l-7 -7z` }),
    );
  };

  const makeExplorer = (explorer) => {
    const form = explorer.querySelector("form");
    const verdict = explorer.querySelector(".verdict");
    const drawing = explorer.querySelector(".drawing");
    explorer.querySelector("[data-static]").hidden = true;
    const put = (name, number) => {
      const place = explorer.querySelector(`[data-output="${name}"]`);
      place.dataset.value = number === undefined ? "" : number;
      place.textContent = number === undefined ? "–" : written(number);
    };
    const names = ["b00", "b01", "b10", "b11", "index", "cap", "contrast", "mean", "limit", "largest_harm"];
    const refuse = (words) => {
      verdict.textContent = words;
      drawing.replaceChildren();
      for (const name of names) put(name, undefined);
    };
    const update = () => {
      const fields = { kind: form.elements.kind.value };
      for (const input of form.querySelectorAll("input")) {
        const { badInput, rangeUnderflow, rangeOverflow } = input.validity;
        if (badInput || rangeUnderflow || rangeOverflow || input.value === "") {
          refuse(`${input.parentElement.textContent.trim()}: a number from ${input.min} to ${input.max} is needed.`);
          return;
        }
        fields[input.name] = input.valueAsNumber;
      }
      const scheme = design(fields);
      if (scheme.needed !== undefined) {
        refuse(`This ratio cannot be encoded at this base rate: κ must be above ${written(scheme.needed)}.`);
        return;
      }
      const { low, high, at, cap, mean, limit } = scheme;
      const punitive = fields.kind === "punitive";
      const [u, v] = punitive ? [fields.fpr, fields.fnr] : [fields.fnr, fields.fpr];
      const matrix = punitive ? [1, 1, low, high] : [high, low, 1, 1];
      ["b00", "b01", "b10", "b11"].forEach((name, k) => put(name, matrix[k]));
      put("index", at(u, v));
      put("cap", cap);
      put("contrast", v - fields.kappa * u);
      put("mean", mean(u, v));
      put("limit", limit);
      put("largest_harm", largestHarm(scheme, fields.kappa));
      const keeps = v > fields.kappa * u ? "keeps the ratio" : "does not keep the ratio";
      const below = at(u, v) < cap ? "below the cap" : "not below the cap";
      verdict.textContent = `The model ${keeps}; its index is ${below}.`;
      draw(drawing, scheme, fields);
    };
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", update);
    update();
  };

  for (const explorer of document.querySelectorAll(".explorer")) makeExplorer(explorer);
})();
