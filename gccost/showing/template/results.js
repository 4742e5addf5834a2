// Filters and an order for the ledger. Without a script all of it is there, in its own order.
(() => {
  const rows = [...document.querySelectorAll("table.ledger > tbody > tr[data-verdict]")];
  if (!rows.length) return;
  const groups = new Map(rows.map((row) => [row, row.parentElement]));
  const filters = document.createElement("form");
  filters.className = "filters";
  filters.setAttribute("role", "search");
  const add = (name, control) => {
    const label = document.createElement("label");
    label.append(name, control);
    filters.append(label);
    control.addEventListener("input", show);
    return control;
  };
  const menu = (name, first, values) => {
    const select = document.createElement("select");
    select.append(new Option(first, ""), ...[...new Set(values)].map((each) => new Option(each)));
    return add(name, select);
  };
  const document_ = menu("Document", "all", rows.map((row) => row.dataset.document));
  const verdict = menu("Verdict today", "all", rows.map((row) => row.dataset.verdict));
  const order = menu("Order", "as on the ledger", ["verdict", "measured ÷ published"]);
  const text = add("Text", Object.assign(document.createElement("input"), { type: "search" }));
  const said = filters.appendChild(document.createElement("output"));
  const factor = (row) => (isNaN(row.dataset.factor) ? Infinity : +row.dataset.factor);
  const orders = {
    "": () => 0,
    verdict: (a, b) => a.dataset.verdict.localeCompare(b.dataset.verdict),
    "measured ÷ published": (a, b) => factor(a) - factor(b),
  };

  function show() {
    const words = text.value.toLowerCase();
    for (const row of rows) {
      row.hidden =
        (document_.value && row.dataset.document !== document_.value) ||
        (verdict.value && row.dataset.verdict !== verdict.value) ||
        !row.textContent.toLowerCase().includes(words);
    }
    const first = groups.get(rows[0]);
    for (const row of [...rows].sort(orders[order.value])) {
      (order.value ? first : groups.get(row)).append(row);
    }
    for (const heading of document.querySelectorAll(".ledger :is(.group, .more)")) {
      const own = rows.filter((row) => groups.get(row) === heading.parentElement);
      heading.hidden = Boolean(order.value) || own.every((row) => row.hidden);
      if (heading.matches(".more")) heading.parentElement.append(heading);
    }
    if (order.value || rows.some((row) => row.hidden)) unfold(rows.filter((row) => !row.hidden));
    said.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} claims`;
  }
  // Rows of a folded table cannot be seen.
  const unfold = (shown) => {
    for (const row of shown) row.closest("details")?.setAttribute("open", "");
  };
  const open = () => {
    const row = rows.find((each) => each.id === decodeURIComponent(location.hash.slice(1)));
    if (!row) return;
    row.querySelector("details").open = true;
    unfold([row]);
    row.scrollIntoView();
  };
  filters.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", open);
  rows[0].closest("table").before(filters);
  show();
  open();
})();
