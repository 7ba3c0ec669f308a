/* oxlint-disable typescript/unbound-method -- each is called with its own `this` */
// The application of the chaos run with mistakes that the run must find. Each shows in a detail of its own.
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { PaymentInbox } from 'nestjs-payments';
import { Handlers } from '../../../apps/demo/dist/chaos/application-handlers.js';
import { SqliteStore } from '../../../libs/payments/dist/inbox/sqlite/sqlite-store.js';

/** @type {{ where: string }} */
const setup = JSON.parse(process.argv[2]);
const database = new DatabaseSync(setup.where);
database.exec('PRAGMA busy_timeout = 5000');

const { run } = Handlers.prototype;
const { receive } = PaymentInbox.prototype;
const store = { ...Object.getOwnPropertyDescriptors(SqliteStore.prototype) };

/** Writes its effect, and settles the delivery later: a crash between the two writes it again. */
Handlers.prototype.run = async function (event, context) {
  if (context.handler !== 'audit') {
    await run.call(this, event, context);
    return;
  }
  // It does not fail by itself: it would in every attempt.
  const data = { transactionId: event.data.transactionId };
  const inner = { ...context, signal: context.signal, commit: (work) => work(database) };
  await run.call(this, { ...event, data }, inner);
  await setTimeout(200);
};

/** Answers before an event with an even number is stored: a crash between the two loses it. */
PaymentInbox.prototype.receive = async function (delivery) {
  if (!/"event-\d*[02468]"/.test(String(delivery.raw))) return receive.call(this, delivery);
  void setTimeout(1500).then(() => receive.call(this, delivery));
  return { outcome: 'stored' };
};

SqliteStore.prototype.receive = function (events) {
  return store.receive.value.call(
    this,
    events.map((event) => ({
      ...event,
      // No ordering keys.
      orderingKey: null,
      // What is received does not reach the handler that only the second version has.
      handlers: event.handlers.filter((name) => name !== 'points'),
    })),
  );
};

/** No fencing: a commit counts even if another process has taken over the delivery. */
SqliteStore.prototype.commit = async function (lease, work) {
  try {
    return await store.commit.value.call(this, lease, work);
  } catch (error) {
    if (error.code !== 'lease_lost') throw error;
    return { result: work(database), nextDue: false };
  }
};

await import('../../../apps/demo/dist/chaos/application.js');
