import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { PaymentsEmulator } from 'payments-emulator';
import type { DeliveryAttempt } from 'payments-emulator';
import { ENGINES, engineOfFlag } from 'test-postgres/engines/engine-server';
import type { DemoOptions } from '../demo.js';
import { checkLedger, formatTable, isCorrect } from '../ledger-check.js';
import { SceneReport } from '../scene-report.js';
import { ShopClient } from '../shop-client.js';
import { ShopProcess } from '../shop-process.js';
import { SERVICES } from './engine-settings.js';
import type { EngineSettings } from './engine-settings.js';

const APPLICATION = fileURLToPath(new URL('engine-application.js', import.meta.url));
const PAYMENTS = 6;
/**
 * Maximum time until the engine has started again and has taken all events, in milliseconds. After four failed
 * attempts, the gateway waits up to half a minute before it hands an event over again.
 */
const RECOVERY_MS = 120_000;

/** Options of the demo with an engine. */
export interface EngineDemoOptions extends Pick<
  DemoOptions,
  'once' | 'seed' | 'waitMs' | 'print' | 'signal'
> {
  /** The value of the flag `--engine`. */
  readonly engine: string;
}

/**
 * Plays payments whose events the gateway receives and hands over to the engine. Two worker services, `ledger` and
 * `mail`, take the events from the engine and record the payments. The demo kills the engine while payments are made.
 * Resolves with `true` if the ledgers of both worker services and all checks were correct. Always ends all processes
 * that it started.
 *
 * @throws TypeError if there is no such engine, Error if the server of the engine is not installed on this machine or
 *   if a process did not start, and the reason of `signal` if `signal` aborts before the ledgers have been checked.
 */
export async function runEngineDemo(options: EngineDemoOptions): Promise<boolean> {
  const { seed, signal, print } = options;
  const name = engineOfFlag(options.engine);
  const report = new SceneReport(print, signal, options.waitMs);
  await using ending = new AsyncDisposableStack();
  const folder = await mkdtemp(path.join(tmpdir(), 'engine-demo-'));
  ending.defer(() => rm(folder, { recursive: true, force: true }));
  const engine = ending.use(await ENGINES[name].start());
  const arrived: DeliveryAttempt[] = [];
  const onDelivery = (delivery: DeliveryAttempt): void => void arrived.push(delivery);
  const emulator = ending.use(await PaymentsEmulator.start({ seed, onDelivery }));
  const { clientId, clientSecret, webhookSecret } = emulator.company;
  const log: string[] = [];
  const start = async (service: string): Promise<ShopProcess> => {
    const settings: EngineSettings & Record<string, string> = {
      DEMO_ENGINE: name,
      DEMO_ENGINE_URL: engine.url,
      DEMO_SERVICE: service,
      DEMO_FILE: path.join(folder, `${service}.db`),
      PAYMENTS_BASE_URL: emulator.baseUrl,
      PAYMENTS_CLIENT_ID: clientId,
      PAYMENTS_CLIENT_SECRET: clientSecret,
      PAYMENTS_WEBHOOK_SECRET: webhookSecret,
    };
    const application = { file: APPLICATION, settings, log, telemetry: null };
    return ending.use(await ShopProcess.start(application, signal));
  };
  // A worker service gets only events that the gateway hands over after the worker service has started for the first
  // time.
  const services = await Promise.all(
    SERVICES.map(async (service) => {
      const { url } = await start(service);
      return { service, url, client: new ShopClient(url, signal) };
    }),
  );
  const gateway = await start('gateway');
  const inbox = new ShopClient(gateway.url, signal);
  emulator.setWebhook({ url: `${gateway.url}/webhooks/payments` });
  report.line(`emulator  ${emulator.baseUrl}  (seed ${seed})`);
  report.line(`engine    ${name}`);
  report.line(`gateway   ${gateway.url}`);
  for (const { service, url } of services) report.line(`${service.padEnd(10)}${url}`);

  const pay = (count: number, from: number): void => {
    for (let number = from; number < from + count; number += 1) {
      const payment = { amount: 100 + number, externalReference: `order-${number}` };
      emulator.complete(emulator.createCheckoutInvoice(payment).transactionId);
    }
  };
  const recorded = async (count: number): Promise<void> => {
    for (const { service, client } of services) {
      const entries = async () => (await client.ledger()).length;
      await report.check(`payments that ${service} has recorded`, count, entries, RECOVERY_MS);
    }
  };
  const acknowledged = (count: number): Promise<void> =>
    report.check(
      'webhook requests with response 200',
      count,
      () => arrived.filter(({ response }) => response?.status === 200).length,
    );

  report.scene(
    'Each event arrives twice and out of order at the gateway, and both services get it once',
  );
  const window = 2 * PAYMENTS;
  emulator.setFaults({ delivery: { duplicate: {}, reorder: { window, maxWaitMs: 10_000 } } });
  pay(PAYMENTS, 1);
  await emulator.idle();
  emulator.setFaults({});
  await acknowledged(2 * PAYMENTS);
  await recorded(PAYMENTS);

  report.scene('The engine is killed (SIGKILL) while payments are made, and is then restarted');
  pay(PAYMENTS, PAYMENTS + 1);
  await engine.kill();
  pay(PAYMENTS, 2 * PAYMENTS + 1);
  await emulator.idle();
  await acknowledged(4 * PAYMENTS);
  await report.check('events that wait in the gateway', 'some', async () => {
    const { pending = 0, running = 0 } = await inbox.inbox();
    return pending + running > 0 ? 'some' : 'none';
  });
  await engine.start();
  await recorded(3 * PAYMENTS);
  await report.check('events that wait in the gateway', 0, async () => {
    const { pending = 0, running = 0, dead = 0 } = await inbox.inbox();
    return pending + running + dead;
  });

  const paid = emulator.transactions().filter(({ completedAt }) => completedAt !== undefined);
  let correct = report.failures === 0;
  for (const { service, client } of services) {
    report.scene(`The entries of the service ${service} are compared with the payments`);
    const rows = checkLedger(paid, await client.ledger());
    for (const line of formatTable(rows)) report.line(line);
    correct &&= isCorrect(rows);
  }
  if (!correct) for (const line of log.slice(-20)) report.line(`    ${line}`);
  if (!options.once) {
    report.line();
    report.line(`Everything keeps running. Complete a payment at ${emulator.baseUrl}/emulator/`);
    report.line('Ctrl-C ends the demo.');
    if (!signal.aborted) await once(signal, 'abort');
  }
  return correct;
}
