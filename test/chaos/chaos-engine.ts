import { setTimeout } from 'node:timers/promises';
import type { EngineName } from 'test-postgres/engines/create-engine-adapter';
import { ENGINES } from 'test-postgres/engines/engine-server';
import type { LeftMessages } from 'test-postgres/engines/engine-server';
import type { EngineFaultKind } from './fault-plan.js';
import { TcpProxy } from './tcp-proxy.js';

/** The faults of an engine that several fleets of processes use. */
export interface EngineFaults {
  /** One proxy for each process of the fleet. */
  readonly proxies: readonly TcpProxy[];
  /**
   * Whether the engine has run for as long as its last fault took. Otherwise, an engine that takes long to start would
   * hardly ever run.
   */
  isReady(): boolean;
  /** Injects a fault. Resolves once the engine accepts connections again. */
  inject(kind: EngineFaultKind, ms: number): Promise<void>;
}

/** The server of an engine, and a proxy in front of it for each process of each fleet. */
export interface ChaosEngine extends AsyncDisposable {
  /** The addresses for the processes of a fleet, through the proxies. */
  urls(fleet: number): readonly string[];
  faults(fleet: number): EngineFaults;
  /** Counts the messages that are left for a service. */
  left(service: string): Promise<LeftMessages>;
}

/** Starts the server of an engine for fleets of `processes` processes each. */
export async function openEngine(
  name: EngineName,
  { fleets, processes }: { readonly fleets: number; readonly processes: number },
): Promise<ChaosEngine> {
  const server = await ENGINES[name].start();
  const proxies = await Promise.all(
    Array.from({ length: fleets * processes }, () => TcpProxy.before(server.url)),
  );
  const of = (fleet: number) => proxies.slice(fleet * processes, (fleet + 1) * processes);
  let readyAt = 0;
  const inject = async (kind: EngineFaultKind, ms: number): Promise<void> => {
    const began = performance.now();
    readyAt = Infinity;
    if (kind === 'engine-stop') {
      server.pause();
      await setTimeout(ms);
      server.resume();
    } else {
      await (kind === 'engine-kill' ? server.kill() : server.stop());
      await server.start();
    }
    readyAt = 2 * performance.now() - began;
  };
  return {
    urls: (fleet) => of(fleet).map(([, url]) => url),
    faults: (fleet) => ({
      proxies: of(fleet).map(([proxy]) => proxy),
      isReady: () => performance.now() >= readyAt,
      inject,
    }),
    left: (service) => server.left(service),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(proxies.map(([proxy]) => proxy[Symbol.asyncDispose]()));
      await server[Symbol.asyncDispose]();
    },
  };
}
