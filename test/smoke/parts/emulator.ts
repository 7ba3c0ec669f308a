import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { InstalledCommand } from '../installed-command.ts';
import type { SmokePart } from '../smoke-part.ts';

/** The emulator's command, installed from its tarball into a separate folder. */
export const part: SmokePart = {
  description: 'the command payments-emulator, installed from its tarball',
  async run({ emulator, folder, node, oldestNode }, checks) {
    const { name } = emulator.manifest;
    const commandFolder = join(folder, 'command');
    const command = await InstalledCommand.install(commandFolder, emulator);
    for (const { name: version, path } of [node, await oldestNode()]) {
      await checks.that(`${name}, ${version}: prints its help`, () => command.printsHelp(path));
      await checks.that(`${name}, ${version}: starts, serves its pages, and exits`, () =>
        command.servesPages(path),
      );
      await checks.that(`AP-16 ${name}, ${version}: saves settings, and --seed keeps them`, () =>
        command.savesSettings(path, commandFolder),
      );
      await checks.that(`AP-16 ${name}, ${version}: trigger completes a payment`, async () => {
        const received: string[] = [];
        const server = createServer((request, response) => {
          received.push(String(request.headers['x-webhook-event']));
          response.end();
        }).listen(0, '127.0.0.1');
        try {
          await once(server, 'listening');
          const { port } = server.address() as AddressInfo;
          await command.triggersPayment(path, `http://127.0.0.1:${port}/webhooks/payments`);
        } finally {
          server.close();
        }
        if (received.join() !== 'transaction.completed') throw new Error(`got: ${received.join()}`);
      });
    }
  },
};
