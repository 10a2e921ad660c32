for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells), body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") !== "descending";
      const number = (row) => Number(row.cells[column].dataset.v);
      const text = (row) => row.cells[column].textContent;
      const order = (a, b) => column === 0 ? text(b).localeCompare(text(a)) : number(b) - number(a);
      const rows = Array.from(body.rows).sort((a, b) => falling ? order(a, b) : order(b, a));
      body.replaceChildren(...rows);
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
    });
  });
}
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
