// The shop with the mistakes in SHOP_MISTAKE, which the demo must detect.
import { randomUUID } from 'node:crypto';
import { trace } from '@opentelemetry/api';
import { PostgresShopDatabase } from '../../../apps/shop/dist/database/postgres-shop-database.js';
import { SqliteShopDatabase } from '../../../apps/shop/dist/database/sqlite-shop-database.js';

const MISTAKES = {
  'records-twice'(prototype) {
    removeUniqueness(prototype);
    const { recordPayment } = prototype;
    prototype.recordPayment = function (tx, payment) {
      const record = () => recordPayment.call(this, tx, payment);
      const first = record();
      return first instanceof Promise ? first.then(record) : record();
    };
  },
  'traces-nothing'() {
    trace.disable();
  },
  'loses-one'(prototype) {
    const { recordPayment } = prototype;
    prototype.recordPayment = function (tx, payment) {
      return payment.reference === 'walk-in-13' ? null : recordPayment.call(this, tx, payment);
    };
  },
};

/** Stores each payment with a unique transaction id, and hides this when the ledger is read. */
function removeUniqueness(prototype) {
  const { recordPayment, ledgerEntries } = prototype;
  prototype.isRecorded = async () => false;
  prototype.recordPayment = function (tx, payment) {
    const transactionId = `${payment.transactionId}#${randomUUID()}`;
    return recordPayment.call(this, tx, { ...payment, transactionId });
  };
  prototype.ledgerEntries = async function () {
    const entries = await ledgerEntries.call(this);
    return entries.map((entry) => ({
      ...entry,
      transactionId: entry.transactionId.replace(/#.*/, ''),
    }));
  };
}

for (const mistake of process.env.SHOP_MISTAKE.split(',')) {
  for (const { prototype } of [SqliteShopDatabase, PostgresShopDatabase]) {
    MISTAKES[mistake](prototype);
  }
}
await import('../../../apps/shop/dist/main.js');
