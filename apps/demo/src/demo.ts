import { once } from 'node:events';
import { DAY } from './day.js';
import { Report } from './report.js';
import { Stage } from './stage.js';
import type { StageOptions } from './stage.js';
import { isExact, judge, toTable } from './verdict.js';

/** How the day is played. */
export interface DemoOptions extends StageOptions {
  /** Ends after the verdict, instead of staying up until `signal` aborts. */
  readonly once: boolean;
  /** How long a check waits for what it expects, in milliseconds. */
  readonly waitMs: number;
  readonly print: (line: string) => void;
  /** Ends the demo, wherever it is. */
  readonly signal: AbortSignal;
}

/**
 * Plays the day and tells whether the ledger, and every step on the way, came out right. However it ends,
 * emulator and shop are closed.
 *
 * @throws what `signal` was aborted with before the verdict, and what kept the shop from starting.
 */
export async function runDemo(options: DemoOptions): Promise<boolean> {
  const ended = new AbortController();
  const signal = AbortSignal.any([options.signal, ended.signal]);
  const report = new Report(options.print, signal, options.waitMs);
  await using stage = await Stage.set(options, report, signal, (how) => {
    const log = stage.shops.log.slice(-5).join('\n');
    ended.abort(new Error(`a shop ended by itself: ${how}\n${log}`));
  });
  const { place } = options;
  report.line(`emulator  ${stage.emulator.baseUrl}  (seed ${options.seed})`);
  report.line(`shop      ${stage.shops.url}  (${stage.shops.count} on ${place.name})`);
  await play(stage, report, signal);
  const right = await judgeDay(stage, report);
  if (!right) tellLog(stage, report);
  if (!options.once) await stayUp(stage, report, signal);
  return right;
}

/** A scene that breaks off is a failure, and no reason to leave out the others. */
async function play(stage: Stage, report: Report, signal: AbortSignal): Promise<void> {
  for (const scene of DAY) {
    report.scene(scene.title);
    try {
      await Promise.race([scene.play(stage), rejectOn(signal)]);
    } catch (error) {
      signal.throwIfAborted();
      report.fail(error instanceof Error ? error.message : String(error));
    }
  }
}

/** So that Ctrl-C need not wait for what a scene waits for. */
async function rejectOn(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort');
  throw signal.reason;
}

async function judgeDay({ customer, emulator }: Stage, report: Report): Promise<boolean> {
  report.scene('The ledger against what was really paid');
  await emulator.idle();
  await report.check('deliveries the shop has yet to handle', 0, async () => {
    const { pending = 0, running = 0 } = await customer.inbox();
    return pending + running;
  });
  const paid = emulator.transactions().filter(({ completedAt }) => completedAt !== undefined);
  const rows = judge(paid, await customer.ledger());
  for (const line of toTable(rows)) report.line(line);
  if (report.failures > 0) report.line(`    steps that went otherwise: ${report.failures}`);
  return isExact(rows) && report.failures === 0;
}

function tellLog({ shops }: Stage, report: Report): void {
  report.line();
  report.line("The end of the shop's log:");
  for (const line of shops.log.slice(-20)) report.line(`    ${line}`);
}

async function stayUp({ addresses }: Stage, report: Report, signal: AbortSignal): Promise<void> {
  const { shop, emulator, console, user, password } = addresses;
  report.line();
  report.line('All of it stays up: an order paid on its checkout page shows up in all three.');
  report.line();
  report.line('The shop, to buy something and pay it:');
  report.line(`    ${shop}`);
  report.line("The service's side, emulated, with every delivery and a switch for every fault:");
  report.line(`    ${emulator}`);
  report.line(`The console of the shop's inbox, as ${user} with the password ${password}:`);
  report.line(`    ${console}`);
  report.line();
  report.line('Ctrl-C closes them.');
  if (!signal.aborted) await once(signal, 'abort');
}
