import type { ExpectationStore } from '../../libs/payments/dist/inbox/store/expectation-store.js';
import type { InboxStore, Lease } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { never } from './simulated-process.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** The name of a store operation. `expectations.NAME` is an operation on expectations. */
export type StoreOperation = keyof InboxStore | `expectations.${keyof ExpectationStore}`;

/** Observes store operations. `ended` is called after an operation took effect, before its process gets the result. */
export interface StoreObserver {
  called(process: SimulatedProcess, operation: StoreOperation): void;
  /** Called when the work of a commit has ended. From now on the commit may take effect. */
  worked(process: SimulatedProcess, lease: Lease): void;
  ended(
    process: SimulatedProcess,
    operation: StoreOperation,
    parameters: readonly unknown[],
    outcome: { readonly result: unknown } | { readonly error: unknown },
    /** When the process sent the operation. The operation took effect then or later. */
    sentAt: number,
  ): Promise<void> | void;
  /** Called when the process has received the result. */
  answered(
    process: SimulatedProcess,
    operation: StoreOperation,
    parameters: readonly unknown[],
    result: unknown,
  ): void;
}

/** The store for one process. Its operations take time, and faults make them fail before or after they take effect. */
export function faultyStore(
  store: InboxStore,
  process: SimulatedProcess,
  observer: StoreObserver,
  /** The duration of a slow operation, in milliseconds. */
  slowMs: number,
): InboxStore {
  const call = async (
    operation: StoreOperation,
    parameters: readonly unknown[],
  ): Promise<unknown> => {
    observer.called(process, operation);
    let fault = process.takeFault(operation);
    await process.transfer();
    if (fault === 'slow before') await process.sleep(slowMs);
    if (fault === 'crash before') process.crash();
    if (!process.alive) return never();
    if (fault === 'reject before' || process.cutOff) throw failure(operation, 'before');
    const sentAt = process.timeline.now;
    const outcome = await apply(operation, parameters);
    await observer.ended(process, operation, parameters, outcome, sentAt);
    // A fault for claims waits for a claim that leases a delivery.
    if (fault !== null && fault.endsWith('after') && isEmpty(operation, outcome)) {
      process.addFault({ operation: operation as 'claim', kind: fault });
      fault = null;
    }
    if (fault === 'crash after') process.crash();
    if (!process.alive) return never();
    await process.transfer();
    if (fault === 'slow after') await process.sleep(slowMs);
    if (fault === 'reject after' || process.cutOff) throw failure(operation, 'after');
    if ('error' in outcome) throw outcome.error;
    observer.answered(process, operation, parameters, outcome.result);
    return outcome.result;
  };
  const apply = async (
    operation: StoreOperation,
    parameters: readonly unknown[],
  ): Promise<{ result: unknown } | { error: unknown }> => {
    const name = operation.replace('expectations.', '') as 'find';
    const owner = operation === name ? store : store.expectations;
    const method = (owner as InboxStore)[name] as (...all: unknown[]) => Promise<unknown>;
    try {
      return {
        result: await method.apply(
          owner,
          parameters.map((one) => abortable(one, parameters[0] as Lease)),
        ),
      };
    } catch (error) {
      return { error };
    }
  };
  /** Runs a transaction. The database rolls it back if the process dies. */
  const abortable = (parameter: unknown, lease: Lease): unknown => {
    if (typeof parameter !== 'function') return parameter;
    return (tx: unknown): unknown => {
      const result: unknown = (parameter as (tx: unknown) => unknown)(tx);
      if (!(result instanceof Promise)) {
        observer.worked(process, lease);
        return result;
      }
      return new Promise((resolve, reject) => {
        process.onDeath(() => reject(new Error('The process died during its transaction.')));
        void result.finally(() => observer.worked(process, lease)).then(resolve, reject);
      });
    };
  };
  const expectations = new Proxy(store.expectations, {
    get: (target, name) => {
      if (typeof name !== 'string' || typeof target[name as 'find'] !== 'function')
        return undefined;
      return (...parameters: unknown[]) =>
        call(`expectations.${name as keyof ExpectationStore}`, parameters);
    },
  });
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'capabilities') return target.capabilities;
      if (name === 'onWake') {
        return (listener: () => void) =>
          target.onWake(() => {
            if (!process.oneIn(5)) process.timeline.schedule(0, () => process.deliver(listener));
          });
      }
      if (name === 'expectations') return expectations;
      if (typeof name !== 'string' || typeof target[name as 'find'] !== 'function')
        return undefined;
      return (...parameters: unknown[]) => call(name as keyof InboxStore, parameters);
    },
  });
}

function isEmpty(
  operation: StoreOperation,
  outcome: { readonly result: unknown } | { readonly error: unknown },
): boolean {
  if (!('result' in outcome)) return false;
  if (operation === 'claimSuspect') return outcome.result === null;
  return operation === 'claim' && (outcome.result as unknown[]).length === 0;
}

function failure(operation: StoreOperation, when: string): Error {
  return new Error(`Simulated: the connection was cut ${when} ${operation} took effect.`);
}
