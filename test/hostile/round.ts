import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { ApplicationReport, ApplicationSetup } from './application.ts';
import type { AttackOrder } from './attacker.ts';
import { CommandProcess } from '../support/processes/command-process.ts';
import type { FamilyReport } from './tally.ts';
import type { SenderReport } from './valid-sender.ts';

/** Result of the attack on one adapter. */
export interface Round {
  readonly adapter: string;
  readonly seconds: number;
  readonly families: readonly FamilyReport[];
  readonly sender: SenderReport;
  /** The application that receives webhook requests. */
  readonly receiver: ApplicationReport;
  /** The application that calls the hostile service. */
  readonly caller: ApplicationReport;
  /** Log output of both applications during the attack. */
  readonly log: string;
}

/** The attacker processes: the application that each process attacks, and its families of attacks (`families/`). */
const ATTACKERS = [
  { target: 'receiver', files: ['malformed-http', 'slow-senders'] },
  { target: 'receiver', files: ['unknown-companies', 'forged-signatures', 'hostile-json'] },
  { target: 'caller', files: ['service-responses'] },
] as const;
const WARM_UP_MS = 3000;
/**
 * Node flags of the applications. The second flag limits the young generation of the heap. Without the flag, this
 * generation grows by 100 MB under any load on a machine with much memory. In a container of 512 MB, the default limit of
 * Node.js is lower than this flag.
 */
const HEAP: readonly string[] = ['--max-old-space-size=512', '--max-semi-space-size=16'];

/**
 * Attacks applications on one adapter.
 *
 * @param family the only family to run; default: all families
 * @throws if the application or another process exits unexpectedly
 */
export async function attack(
  adapter: string,
  seconds: number,
  seed: number,
  family?: string,
): Promise<Round> {
  const folder = await mkdtemp(join(tmpdir(), 'nestjs-payments-hostile-'));
  const children: CommandProcess[] = [];
  try {
    const start = async (file: string, flags: readonly string[] = []): Promise<CommandProcess> => {
      const env = { ...process.env, NO_COLOR: '1', NODE_ENV: 'production' };
      const path = join(import.meta.dirname, file);
      const child = await CommandProcess.start(path, { flags, env, keepOutput: true });
      children.push(child);
      return child;
    };
    // One application receives webhook requests and the other calls the service, so that each is measured separately.
    const receiver = await start('application.ts', HEAP);
    const caller = await start('application.ts', HEAP);
    const sender = await start('valid-sender.ts');
    const attackers = await Promise.all(ATTACKERS.map(() => start('attacker.ts')));
    const ports = {
      receiver: await startOn(receiver, adapter, join(folder, 'receiver.db')),
      caller: await startOn(caller, adapter, join(folder, 'caller.db')),
    };
    await sender.request('start', ports.receiver);
    await wait(WARM_UP_MS);
    await Promise.all([receiver, caller, sender].map((child) => child.request('begin')));
    const booted = { receiver: receiver.output.length, caller: caller.output.length };
    const reports = await Promise.all(
      ATTACKERS.map(({ target, files }, index) => {
        const families = files.filter((file) => file === (family ?? file));
        const order: AttackOrder = { port: ports[target], seed, seconds, families };
        return attackers[index]!.request<FamilyReport[]>('attack', order);
      }),
    );
    return {
      adapter,
      seconds,
      families: reports.flat(),
      sender: await sender.request<SenderReport>('stop'),
      receiver: await receiver.request<ApplicationReport>('report'),
      caller: await caller.request<ApplicationReport>('report'),
      log: receiver.output.slice(booted.receiver) + caller.output.slice(booted.caller),
    };
  } finally {
    await Promise.all(children.map((child) => child.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

function startOn(application: CommandProcess, adapter: string, file: string): Promise<number> {
  const setup: ApplicationSetup = { adapter, file };
  return application.request<number>('start', setup);
}
