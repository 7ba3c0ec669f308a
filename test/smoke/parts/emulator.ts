import { join } from 'node:path';
import { InstalledCommand } from '../installed-command.ts';
import type { SmokePart } from '../smoke-part.ts';

/** The emulator's command, installed into a folder of its own. */
export const part: SmokePart = {
  description: 'the command payments-emulator, installed from its tarball',
  async run({ emulator, folder, node, oldestNode }, checks) {
    const { name } = emulator.manifest;
    const command = await InstalledCommand.install(join(folder, 'command'), emulator);
    for (const runner of [node, await oldestNode()]) {
      await checks.that(`${name}, ${runner.name}: prints its help`, () =>
        command.helps(runner.path),
      );
      await checks.that(`${name}, ${runner.name}: starts, serves its pages, and ends`, () =>
        command.serves(runner.path),
      );
    }
  },
};
