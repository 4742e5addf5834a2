// Filters and an order for the ledger, which the page's address keeps: #verdict=holds&text=free.
// Without a script all of it is there, in its own order.
(() => {
  const rows = [...document.querySelectorAll("table.ledger > tbody > tr[data-verdict]")];
  if (!rows.length) return;
  const groups = new Map(rows.map((row) => [row, row.parentElement]));
  const filters = document.createElement("form");
  filters.className = "filters";
  filters.setAttribute("role", "search");
  const add = (words, name, control) => {
    const label = document.createElement("label");
    control.name = name;
    label.append(words, control);
    filters.append(label);
    control.addEventListener("input", show);
    control.addEventListener("input", keep);
    return control;
  };
  const menu = (words, name, first, values) => {
    const select = document.createElement("select");
    select.append(new Option(first, ""), ...[...new Set(values)].map((each) => new Option(each)));
    return add(words, name, select);
  };
  const document_ = menu("Document", "document", "all", rows.map((row) => row.dataset.document));
  const verdict = menu("Verdict today", "verdict", "all", rows.map((row) => row.dataset.verdict));
  const order = menu("Order", "order", "as on the ledger", ["verdict", "measured ÷ published"]);
  const box = Object.assign(document.createElement("input"), { type: "search" });
  const text = add("Text", "text", box);
  const controls = [document_, verdict, order, text];
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
  // The address as it would be copied.
  function keep() {
    const set = controls.filter((control) => control.value);
    const state = new URLSearchParams(set.map((control) => [control.name, control.value]));
    history.replaceState(null, "", `#${state}`);
  }
  // Rows of a folded table cannot be seen.
  const unfold = (shown) => {
    for (const row of shown) row.closest("details")?.setAttribute("open", "");
  };
  const open = () => {
    if (location.hash.includes("=")) {
      const state = new URLSearchParams(location.hash.slice(1));
      for (const control of controls) {
        control.value = state.get(control.name) ?? "";
        if (control.selectedIndex < 0) control.value = ""; // the ledger has no such verdict now
      }
      show();
    }
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
