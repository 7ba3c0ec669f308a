// The shop with a mistake in its ledger, which the demo must find: `books-twice` or `loses-one`.
import { Ledger } from '../../apps/shop/dist/ledger/ledger.js';

const entries = [];
const mistake = process.env.SHOP_MISTAKE;

Ledger.prototype.has = async () => false;
Ledger.prototype.book = async ({ matched, ...payment }) => {
  const known = entries.some(({ transactionId }) => transactionId === payment.transactionId);
  if (known && mistake !== 'books-twice') return null;
  const bookedAt = new Date().toISOString();
  const entry = { ...payment, bookedAt, ...(matched ? {} : { unmatched: true }) };
  if (matched || mistake !== 'loses-one') entries.push(entry);
  return entry;
};
Ledger.prototype.entries = async () => entries;
Ledger.prototype.paidFor = async (reference) =>
  entries
    .filter((entry) => entry.reference === reference && !entry.unmatched)
    .reduce((sum, { amount }) => sum + amount, 0);

await import('../../apps/shop/dist/main.js');
