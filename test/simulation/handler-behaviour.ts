import type {
  PaymentEvent,
  PaymentEventContext,
} from '../../libs/payments/dist/events/payment-event.js';
import { UnrecoverableError } from '../../libs/payments/dist/errors/payments-error.js';
import { never } from './simulated-process.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { SimulatedDatabase } from './simulated-database.ts';

/** What a handler does in one attempt. */
export const BEHAVIOURS = [
  'succeed',
  'work',
  'fail',
  'fail for good',
  'hang until aborted',
  'ignore the signal',
  'commit',
  'commit, then throw',
  'commit, then work',
  'commit slowly',
  'commit nothing',
  'commit twice',
  'commit after the time limit',
  'crash the process',
] as const;
export type Behaviour = (typeof BEHAVIOURS)[number];

/** Behaviours that store an effect if they succeed. */
export const COMMITTING: ReadonlySet<Behaviour> = new Set<Behaviour>([
  'commit',
  'commit, then throw',
  'commit, then work',
  'commit slowly',
  'commit twice',
]);

/** The durations of the behaviours `work` and `commit slowly`, and the time limit of handlers, in milliseconds. */
export interface BehaviourTimes {
  readonly workMs: number;
  readonly slowCommitMs: number;
  readonly timeoutMs: number;
}

/** Runs one attempt of a handler with the given behaviour. */
export async function behave(
  behaviour: Behaviour,
  process: SimulatedProcess,
  times: BehaviourTimes,
  database: SimulatedDatabase,
  { id }: PaymentEvent,
  context: PaymentEventContext,
): Promise<void> {
  const effect = `${context.company}/${id}/${context.handler}`;
  const commit = (wait = process.transfer()): Promise<unknown> =>
    context.commit((tx) => {
      if (database.synchronous) return database.write(tx, effect);
      return wait.then(() => database.write(tx, effect));
    });
  switch (behaviour) {
    case 'succeed':
      return;
    case 'work':
      await process.sleep(times.workMs);
      return;
    case 'fail':
      throw new Error('The scenario makes this handler fail.');
    case 'fail for good':
      throw new UnrecoverableError('The scenario makes this handler fail for good.');
    case 'hang until aborted':
      await new Promise((_resolve, reject) => {
        context.signal.addEventListener('abort', () => reject(context.signal.reason as Error));
      });
      return;
    case 'ignore the signal':
      await process.sleep(2 * times.timeoutMs);
      return;
    case 'commit':
      await commit();
      return;
    case 'commit, then throw':
      await commit();
      throw new Error('The scenario makes this handler fail after its commit.');
    case 'commit, then work':
      await commit();
      await process.sleep(times.workMs);
      return;
    case 'commit slowly':
      await commit(process.sleep(times.slowCommitMs));
      return;
    case 'commit nothing':
      await context.commit((tx) => {
        const failed = (): never => {
          throw new Error('The scenario makes the work of this commit fail.');
        };
        const written = database.write(tx, effect);
        return written === undefined ? failed() : written.then(failed);
      });
      return;
    case 'commit twice':
      await commit();
      await attemptSecondCommit(commit());
      return;
    case 'commit after the time limit':
      await process.sleep(times.timeoutMs + times.workMs);
      await commit();
      return;
    case 'crash the process':
      await process.sleep(times.workMs / 4);
      process.crash();
      await never();
  }
}

/** Ignores the rejection of a second commit. If the commit is not rejected, the checks find its effect twice. */
async function attemptSecondCommit(second: Promise<unknown>): Promise<void> {
  await second.catch(() => {});
}
