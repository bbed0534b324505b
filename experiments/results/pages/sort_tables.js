// A heading of a sortable table sorts by its column: ascending, then descending, then in the original order again.
// Numbers go by value: of equal ones, an upper bound of x comes before x and a lower bound after it; a range has the place of its lower
// end. Cells without a number, such as "undetermined", "reference" and "-", come last in both directions. A column
// without numbers, and that of the arms, goes by its text. Cells of a column share a unit.
{
  const NUMBER = /^(>=|\u003c=)?\s*([+-]?(?:\d[\d,]*)?\.?\d+)/;
  const text = (row, index) => row.cells[index].firstElementChild?.className === "swatch"
    ? row.cells[index].textContent.trim() : (row.cells[index].innerText.trim().split("\n")[0]);
  const number = (row, index) => {
    const found = row.cells[index].tagName === "TH" ? null : NUMBER.exec(text(row, index));
    return found && [Number(found[2].replaceAll(",", "")), found[1] === ">=" ? 1 : found[1] ? -1 : 0];
  };
  const sorted = (rows, index, sign) => {
    const keyed = rows.map((row) => [row, number(row, index)]);
    const numbers = keyed.filter(([, key]) => key);
    if (!numbers.length) {
      return [...rows].sort((a, b) => sign * text(a, index).localeCompare(text(b, index), "en", { numeric: true }));
    }
    numbers.sort(([, a], [, b]) => sign * (a[0] - b[0] || a[1] - b[1]));
    return [...numbers, ...keyed.filter(([, key]) => !key)].map(([row]) => row);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0], original = [...body.rows], headings = [...table.tHead.rows[0].cells];
    if (!(original.length > 1)) continue;
    headings.forEach((heading, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      if (heading.querySelector("a")) {  // a link stays one, and the button stands beside it
        button.setAttribute("aria-label", `sort by ${heading.textContent.trim()}`);
      } else {
        button.append(...heading.childNodes);
      }
      heading.append(button);
      button.addEventListener("click", () => {
        const next = { ascending: "descending", descending: null }[heading.getAttribute("aria-sort")];
        const direction = next === undefined ? "ascending" : next;
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        if (direction) heading.setAttribute("aria-sort", direction);
        body.append(...(direction ? sorted(original, index, direction === "ascending" ? 1 : -1) : original));
      });
    });
  }
}
