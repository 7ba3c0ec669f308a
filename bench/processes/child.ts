import { join } from 'node:path';
import { CommandProcess } from '../../test/support/processes/command-process.ts';

/**
 * Starts a script of the bench and waits until it is ready. If BENCH_CPU_PROF names a folder, the process writes a CPU
 * profile to it when it exits.
 *
 * @param flags flags of Node, for example `--expose-gc`.
 */
export function startChild(
  file: string,
  config: unknown = {},
  flags: readonly string[] = [],
): Promise<CommandProcess> {
  const profiles = process.env['BENCH_CPU_PROF'];
  const profile = profiles ? ['--cpu-prof', `--cpu-prof-dir=${profiles}`] : [];
  return CommandProcess.start(join(import.meta.dirname, '..', file), {
    config,
    flags: [...profile, ...flags],
  });
}
