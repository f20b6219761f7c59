'use strict';
// Tables sort by the column whose head is pressed; numbers by value.
for (const table of document.querySelectorAll('table.sortable')) {
  const heads = table.tHead.rows[0].cells;
  Array.from(heads).forEach((head, column) => {
    head.querySelector('button').addEventListener('click', () => {
      const falling = head.getAttribute('aria-sort') === 'ascending';
      for (const other of heads) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', falling ? 'descending' : 'ascending');
      const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const rows = Array.from(table.tBodies[0].rows);
      rows.sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        const order = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
        return falling ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}
// Light or dark: the system's choice until one is made.
document.getElementById('theme').addEventListener('click', () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
});
