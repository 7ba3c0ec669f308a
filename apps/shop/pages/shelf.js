// Nothing here is needed to buy: the forms are plain ones.

// Where the browser shows the shelf as it was left, its ticket has been used.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload();
});

for (const form of document.forms) {
  form.addEventListener('submit', () => {
    const button = form.querySelector('button');
    if (button === null) return;
    button.textContent = 'Ordering …';
    // Not disabled: a click that was lost may be repeated, and a form that is sent twice orders once.
    button.setAttribute('aria-busy', 'true');
  });
}
