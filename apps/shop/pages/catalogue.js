// The forms work without this script.

// A page from the back-forward cache contains an idempotency key that was already used.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) location.reload();
});

for (const form of document.forms) {
  form.addEventListener('submit', () => {
    const button = form.querySelector('button');
    if (button === null) return;
    button.textContent = 'Ordering …';
    // The button stays enabled, so that the customer can retry a failed request. A form that is sent twice creates one order.
    button.setAttribute('aria-busy', 'true');
  });
}
