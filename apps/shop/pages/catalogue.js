// The forms work without this script.

// A page from the back-forward cache has an idempotency key that was used already.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload();
});

for (const form of document.forms) {
  form.addEventListener('submit', () => {
    const button = form.querySelector('button');
    if (button === null) return;
    button.textContent = 'Ordering …';
    // Not disabled, so that the customer can click again if the request fails. A form that is sent twice orders once.
    button.setAttribute('aria-busy', 'true');
  });
}
