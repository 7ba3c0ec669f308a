// The side of a child process: it reads its configuration and responds to the commands of the bench.

/** The configuration that the process was started with. */
export function configuration(): unknown {
  return JSON.parse(process.argv[2] ?? '{}');
}

/** The resources that a process has used so far. */
export interface Usage {
  /** Processor time of all threads. */
  readonly cpuMs: number;
  readonly rssMb: number;
  readonly heapMb: number;
}

/** A command of the bench. */
export interface Command {
  readonly id: number;
  readonly command: string;
  readonly value?: unknown;
}

/**
 * Sends `ready` to the bench and then responds to its commands. The process exits on the command `end`, or when the bench
 * disconnects.
 */
export function serveCommands(
  ready: unknown,
  commands: Readonly<Record<string, (value: never) => unknown>> = {},
): void {
  const all: typeof commands = { usage, ...commands };
  process.on('message', ({ id, command, value }: Command) => {
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

function usage(): Usage {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  return { cpuMs: (user + system) / 1000, rssMb: rss / 1e6, heapMb: heapUsed / 1e6 };
}
