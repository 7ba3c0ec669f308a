/* oxlint-disable typescript/unbound-method -- each is called with its own `this` */
// The shop with a mistake, named by SHOP_MISTAKE, that the demo or the chaos run must find.
import { randomUUID } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { PaymentInbox } from 'nestjs-payments';
import { PostgresBooks } from '../../apps/shop/dist/books/postgres.books.js';
import { SqliteBooks } from '../../apps/shop/dist/books/sqlite.books.js';
import { Bookkeeper } from '../../apps/shop/dist/payments/bookkeeper.js';

const MISTAKES = {
  /** Books twice in one transaction, and has no constraint that prevents it. */
  'books-twice'() {
    forgetWhatIsBooked();
    for (const { prototype } of [SqliteBooks, PostgresBooks]) {
      const { book } = prototype;
      prototype.book = function (tx, payment) {
        const again = () => book.call(this, tx, payment);
        const first = again();
        return first instanceof Promise ? first.then(again) : again();
      };
    }
  },
  'loses-one'() {
    for (const { prototype } of [SqliteBooks, PostgresBooks]) {
      const { book } = prototype;
      prototype.book = function (tx, payment) {
        return payment.reference === 'walk-in-13' ? null : book.call(this, tx, payment);
      };
    }
  },
  /** Books, and settles the delivery later: a crash between the two books it again. */
  'books-outside-the-commit'() {
    forgetWhatIsBooked();
    wrapHandler(async (handle, { books }, event, context) => {
      const commit = (work) => work(books.database ?? books.pool);
      await handle(event, { ...context, commit });
      await setTimeout(300);
    });
  },
  /** Says so before it is true: a crash between the two loses it. */
  'answers-before-it-stores'() {
    const { receive } = PaymentInbox.prototype;
    PaymentInbox.prototype.receive = async function (delivery) {
      void setTimeout(300).then(() => receive.call(this, delivery));
      return { outcome: 'stored' };
    };
  },
};

function forgetWhatIsBooked() {
  for (const { prototype } of [SqliteBooks, PostgresBooks]) {
    const { book, entries } = prototype;
    prototype.isBooked = async () => false;
    prototype.book = function (tx, payment) {
      const transactionId = `${payment.transactionId}#${randomUUID()}`;
      return book.call(this, tx, { ...payment, transactionId });
    };
    prototype.entries = async function () {
      const known = await entries.call(this);
      return known.map((entry) => ({
        ...entry,
        transactionId: entry.transactionId.replace(/#.*/, ''),
      }));
    };
  }
}

/** What the decorator said of the handler is said of its stand-in. */
function wrapHandler(stand) {
  const original = Bookkeeper.prototype.bookPayment;
  const handler = function (...args) {
    return stand(original.bind(this), this, ...args);
  };
  for (const key of Reflect.getMetadataKeys(original)) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, original), handler);
  }
  Bookkeeper.prototype.bookPayment = handler;
}

MISTAKES[process.env.SHOP_MISTAKE]();
await import('../../apps/shop/dist/main.js');
