/* oxlint-disable typescript/unbound-method -- each is called with its own `this` */
// The application of the chaos run with three mistakes in its purchases. The checker must find each.
import { Purchases } from './dist/application-purchases.js';

const { expect, request, store } = Purchases.prototype;

/** Expects no payment with an even number. Without a webhook request, no poll finds such a payment. */
Purchases.prototype.expect = async function (reference, tx) {
  if (!/[02468]$/.test(reference)) await expect.call(this, reference, tx);
};

/** Requests a payment with the last digit 1 or 3 twice. */
Purchases.prototype.store = async function (reference) {
  const isNew = await store.call(this, reference);
  if (isNew && /[13]$/.test(reference)) await request.call(this, reference);
  return isNew;
};

/** Treats a payment that is not complete yet as declined. */
const { interpret } = Purchases;
Purchases.interpret = ({ ...transaction }) => {
  const meaning = interpret(transaction);
  if (meaning !== 'pending' || !/[79]$/.test(String(transaction.externalReference))) return meaning;
  return { eventType: 'transaction.declined', data: {} };
};

await import('./dist/application.js');
