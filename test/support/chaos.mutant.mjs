/* oxlint-disable typescript/unbound-method -- each is called with its own `this` */
// The application of the chaos run with a mistake, named by CHAOS_MISTAKE, that the run must find.
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { PaymentInbox } from 'nestjs-payments';
import { Handlers } from '../../apps/demo/dist/chaos/application-handlers.js';
import { SqliteStore } from '../../libs/payments/dist/inbox/sqlite/sqlite-store.js';

/** @type {{ where: string, version: number }} */
const setup = JSON.parse(process.argv[2]);

const MISTAKES = {
  /** Writes its effect, and settles the delivery later: a crash between the two writes it again. */
  'effect outside of the commit'() {
    const database = new DatabaseSync(setup.where);
    database.exec('PRAGMA busy_timeout = 5000');
    const { run } = Handlers.prototype;
    Handlers.prototype.run = async function (event, context) {
      const commit = (work) => work(database);
      // No handler of it kills its process: it would do so in every attempt.
      const data = { transactionId: event.data.transactionId };
      const inner = { ...context, signal: context.signal, commit };
      await run.call(this, { ...event, data }, inner);
      await setTimeout(100);
    };
  },
  /** Answers before it is true: a crash between the two loses the event. */
  'answer before the event is stored'() {
    const { receive } = PaymentInbox.prototype;
    PaymentInbox.prototype.receive = async function (delivery) {
      void setTimeout(300).then(() => receive.call(this, delivery));
      return { outcome: 'stored' };
    };
  },
  'no ordering keys': () => changeEvents((event) => ({ ...event, orderingKey: null })),
  /** What a process of the first version receives does not reach the handler of the second one. */
  'deliveries to own handlers only': () =>
    changeEvents((event) => ({
      ...event,
      handlers: event.handlers.filter((name) => setup.version === 2 || name !== 'points'),
    })),
};

function changeEvents(change) {
  const { receive } = SqliteStore.prototype;
  SqliteStore.prototype.receive = function (events) {
    return receive.call(this, events.map(change));
  };
}

MISTAKES[process.env.CHAOS_MISTAKE]();
await import('../../apps/demo/dist/chaos/application.js');
