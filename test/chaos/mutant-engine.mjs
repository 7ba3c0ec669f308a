/* oxlint-disable typescript/unbound-method -- it is called with its own `this` */
// The application of the chaos run with an engine, with a mistake that the checker must find: a service acknowledges half
// of its messages long before it stores their events. Each process that ends in between, at the latest at the end of the
// run, loses events.
import { setTimeout } from 'node:timers/promises';
import { EventReceiver } from '../../libs/payments/dist/inbox/receive/event-receiver.js';

/** @type {{ engine: { service?: string } }} */
const { engine } = JSON.parse(process.argv[2]);
const { receiveMessage } = EventReceiver.prototype;

EventReceiver.prototype.receiveMessage = async function (event, parsed) {
  if (engine.service === undefined || !/"event-\d*[02468]"/.test(String(event.raw))) {
    return receiveMessage.call(this, event, parsed);
  }
  void setTimeout(3_600_000, undefined, { ref: false })
    .then(() => receiveMessage.call(this, event, parsed))
    .catch(() => {});
  return { status: 'stored', id: event.id };
};

await import('./dist/application.js');
