import { once } from 'node:events';
import { DemoEnvironment } from './demo-environment.js';
import type { EnvironmentOptions, Scene } from './demo-environment.js';
import { checkLedger, formatTable, isCorrect } from './ledger-check.js';
import { SceneReport } from './scene-report.js';
import { SCENES } from './scenes/index.js';
import { TELEMETRY_SCENES } from './scenes/telemetry.js';

export interface DemoOptions extends EnvironmentOptions {
  /** Whether the demo ends after it has checked the ledger. Otherwise the demo runs until `signal` aborts. */
  readonly once: boolean;
  /** How long a check waits for the expected result, in milliseconds. */
  readonly waitMs: number;
  readonly print: (line: string) => void;
  /** A signal that ends the demo at any time. */
  readonly signal: AbortSignal;
}

/**
 * Plays all scenes. Resolves with `true` if the ledger and every check were correct. Always closes the emulator and the
 * shop.
 *
 * @throws the reason of `signal` if `signal` aborts before the ledger has been checked. Throws an error if a shop did
 *   not start or exited unexpectedly.
 */
export async function runDemo(options: DemoOptions): Promise<boolean> {
  const failure = new AbortController();
  const signal = AbortSignal.any([options.signal, failure.signal]);
  const report = new SceneReport(options.print, signal, options.waitMs);
  await using environment = await DemoEnvironment.start(options, report, signal, (reason) => {
    const log = environment.shops.log.slice(-5).join('\n');
    failure.abort(new Error(`a shop exited unexpectedly: ${reason}\n${log}`));
  });
  const { emulator, shops } = environment;
  report.line(`emulator  ${emulator.baseUrl}  (seed ${options.seed})`);
  report.line(`shop      ${shops.url}  (${shops.count} on ${options.database.name})`);
  await playScenes(SCENES, environment, report, signal);
  const ledgerCorrect = await checkResult(environment, report);
  if (shops.telemetry !== null) {
    await playScenes(TELEMETRY_SCENES, environment, report, signal);
  }
  const correct = ledgerCorrect && report.failures === 0;
  if (!correct) printShopLog(environment, report);
  if (!options.once) await waitForEnd(environment, report, signal);
  return correct;
}

/** Plays the scenes in order. If a scene throws an error, the report counts a failure, and the next scene starts. */
async function playScenes(
  scenes: readonly Scene[],
  environment: DemoEnvironment,
  report: SceneReport,
  signal: AbortSignal,
): Promise<void> {
  for (const scene of scenes) {
    report.scene(scene.title);
    try {
      await Promise.race([scene.play(environment), rejectOnAbort(signal)]);
    } catch (error) {
      signal.throwIfAborted();
      report.fail(error instanceof Error ? error.message : String(error));
    }
  }
}

/** Rejects when `signal` aborts, so that Ctrl-C ends the demo while a scene is running. */
async function rejectOnAbort(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
}

async function checkResult(
  { customer, emulator }: DemoEnvironment,
  report: SceneReport,
): Promise<boolean> {
  report.scene('The ledger is compared with the payments');
  await emulator.idle();
  await report.check('deliveries that the shop has not handled yet', 0, async () => {
    const { pending = 0, running = 0 } = await customer.inbox();
    return pending + running;
  });
  const paid = emulator.transactions().filter(({ completedAt }) => completedAt !== undefined);
  const rows = checkLedger(paid, await customer.ledger());
  for (const line of formatTable(rows)) report.line(line);
  if (report.failures > 0) report.line(`    failed checks: ${report.failures}`);
  return isCorrect(rows) && report.failures === 0;
}

function printShopLog({ shops }: DemoEnvironment, report: SceneReport): void {
  report.line();
  report.line('The last log lines of the shop:');
  for (const line of shops.log.slice(-20)) report.line(`    ${line}`);
}

async function waitForEnd(
  { addresses, shops: { telemetry } }: DemoEnvironment,
  report: SceneReport,
  signal: AbortSignal,
): Promise<void> {
  const { shop, emulator, console, user, password } = addresses;
  report.line();
  report.line(
    'Everything keeps running. An order that you pay on its checkout page appears on all three pages.',
  );
  report.line();
  report.line('The shop, to buy and pay:');
  report.line(`    ${shop}`);
  report.line('The emulator of the payments service, with all deliveries and faults:');
  report.line(`    ${emulator}`);
  report.line(`The console of the shop's inbox, as ${user} with the password ${password}:`);
  report.line(`    ${console}`);
  if (telemetry !== null) {
    report.line('The metrics of the shops, for Prometheus:');
    for (const [, url] of telemetry.metricsUrls) report.line(`    ${url}`);
  }
  report.line();
  report.line('Ctrl-C ends the demo.');
  if (!signal.aborted) await once(signal, 'abort');
}
