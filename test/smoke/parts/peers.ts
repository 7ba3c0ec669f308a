import { join } from 'node:path';
import { MerchantApplication } from '../merchant-application.ts';
import { ADAPTERS, MERCHANTS } from '../merchant-application-setups.ts';
import type { SmokePart } from '../smoke-part.ts';

/** Applications with the newest peers of each major of Nest, and with the oldest version of every peer. */
export const part: SmokePart = {
  description: 'newest and oldest peers: installs, imports, compiles, runs on both adapters',
  async run({ payments, consolePackage, folder, node, oldestNode, all }, checks) {
    const oldest = await oldestNode();
    for (const [index, merchant] of MERCHANTS.entries()) {
      const { name } = merchant;
      const application = await MerchantApplication.install(
        merchant,
        join(folder, `merchant-${index}`),
        [payments, consolePackage],
      );
      await checks.that(`${name}: every peer is installed once`, () => application.hasAllPeers());
      for (const runner of [node, oldest]) {
        await checks.that(
          `AP-10 ${name}, ${runner.name}: imports every entry, also without an adapter, a database or an optional peer`,
          () => application.imports(runner.path),
        );
      }
      const compiled = await checks.that(
        `${name}: compiles, including the declarations of the packages`,
        async () => {
          const foreign = await application.compiles();
          if (foreign.length > 0) {
            checks.note(`${foreign.length} errors are in other packages, the first: ${foreign[0]}`);
          }
        },
      );
      if (!compiled) continue;
      // Without `--all`, the oldest peers run on the oldest Node, and all other peers run on the Node of this script.
      const one = merchant === MERCHANTS.at(-1) ? oldest : node;
      for (const runner of all ? [node, oldest] : [one]) {
        for (const adapter of ADAPTERS) {
          await application.runs(
            adapter,
            runner.path,
            `${name}, ${runner.name}, ${adapter}`,
            checks,
          );
        }
      }
    }
  },
};
