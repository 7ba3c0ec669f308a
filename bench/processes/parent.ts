// What a process of the bench speaks with the one that started it.

/** What the process was started with. */
export function configuration(): unknown {
  return JSON.parse(process.argv[2] ?? '{}');
}

/** What a process has used so far. */
export interface Usage {
  /** Of all its threads. */
  readonly cpuMs: number;
  readonly rssMb: number;
  readonly heapMb: number;
}

/**
 * Says that the process is ready, and answers what it is asked, until the one that started it is gone or
 * has it end.
 */
export function answer(
  ready: unknown,
  commands: Readonly<Record<string, (value: never) => unknown>> = {},
): void {
  const all: typeof commands = { usage, ...commands };
  process.on('message', ({ id, command, value }: Question) => {
    void (async () => {
      try {
        if (command === 'end') {
          await all['end']?.(undefined as never);
          process.exit(0);
        }
        process.send!({ id, value: await all[command]!(value as never) });
      } catch (error) {
        process.send!({ id, error: String((error as Error).stack ?? error) });
      }
    })();
  });
  process.on('disconnect', () => process.exit(0));
  process.send!({ id: 0, value: ready });
}

/** What is asked of a process. */
export interface Question {
  readonly id: number;
  readonly command: string;
  readonly value?: unknown;
}

function usage(): Usage {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  return { cpuMs: (user + system) / 1000, rssMb: rss / 1e6, heapMb: heapUsed / 1e6 };
}
