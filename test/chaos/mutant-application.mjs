/* oxlint-disable typescript/unbound-method -- each is called with its own `this` */
// The application of the chaos run with five mistakes. The checker must find each mistake, which causes a violation
// with its own detail.
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { Handlers } from './dist/application-handlers.js';
import { EventReceiver } from '../../libs/payments/dist/inbox/receive/event-receiver.js';
import { SqliteStore } from '../../libs/payments/dist/stores/sqlite/sqlite-store.js';

/** @type {{ database: string }} */
const setup = JSON.parse(process.argv[2]);
const database = new DatabaseSync(setup.database);
database.exec('PRAGMA busy_timeout = 5000');

const { handle } = Handlers.prototype;
const { receive } = EventReceiver.prototype;
const { receive: insert, commit } = SqliteStore.prototype;

/** Writes the effect outside the commit: after a crash before the delivery is settled, the next attempt writes it again. */
Handlers.prototype.handle = async function (event, context) {
  if (context.handler !== 'audit') {
    await handle.call(this, event, context);
    return;
  }
  // The event has no action here, because an action that fails in the first attempt would fail in each attempt.
  const data = { transactionId: event.data.transactionId };
  const inner = { ...context, signal: context.signal, commit: (work) => work(database) };
  await handle.call(this, { ...event, data }, inner);
  await setTimeout(200);
};

/** Responds before it stores an event with an even number. A crash between the two steps loses the event. */
EventReceiver.prototype.receive = async function (event, unshared) {
  if (!/"event-\d*[02468]"/.test(String(event.raw))) return receive.call(this, event, unshared);
  void setTimeout(1500).then(() => receive.call(this, event, unshared));
  return { status: 'stored', id: event.id };
};

SqliteStore.prototype.receive = function (events) {
  return insert.call(
    this,
    events.map((event) => ({
      ...event,
      // No ordering keys. Without the key, an event would not fulfil the expectation of its transaction.
      orderingKey: event.fulfils ? event.orderingKey : null,
      // No delivery for the handler that only the second version has.
      handlers: event.handlers.filter((name) => name !== 'points'),
    })),
  );
};

/** No fencing: an attempt can commit after another process has taken over the delivery. */
SqliteStore.prototype.commit = async function (lease, work) {
  try {
    return await commit.call(this, lease, work);
  } catch (error) {
    if (error.code !== 'lease_lost') throw error;
    return { result: work(database), nextDue: false };
  }
};

await import('./dist/application.js');
