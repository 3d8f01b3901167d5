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
        const group = row.cells[0].textContent.toLocaleLowerCase();
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
})();
