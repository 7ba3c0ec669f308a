import { join } from 'node:path';
import { InstalledApplication } from '../installed-application.ts';
import { PNPM, YARN_PNP } from '../package-managers.ts';
import type { SmokePart } from '../smoke-part.ts';

const APPLICATIONS = {
  'Nest 12, ESM': {
    type: 'module',
    dependencies: {
      '@nestjs/common': '12.5.1',
      '@nestjs/core': '12.5.1',
      '@nestjs/platform-express': '12.5.1',
    },
  },
  'Nest 11, CommonJS': {
    type: 'commonjs',
    dependencies: {
      '@nestjs/common': '11.2.10',
      '@nestjs/core': '11.2.10',
      '@nestjs/platform-express': '11.2.10',
    },
  },
} as const;

/** Package managers that prevent a package from importing packages that it does not declare. */
export const part: SmokePart = {
  description: 'pnpm without hoisting and Yarn PnP: install, boot, SQLite thread',
  async run(context, checks) {
    const { folder, all, node, oldestNode } = context;
    const runners = all ? [node, await oldestNode()] : [node];
    for (const [name, application] of Object.entries(APPLICATIONS).slice(0, all ? 2 : 1)) {
      for (const manager of [PNPM, YARN_PNP]) {
        const title = `AP-03 ${manager.name}, ${name}`;
        const home = join(folder, `${manager.command}-${application.type}`);
        let installed: InstalledApplication | undefined;
        await checks.that(`${title}: installs without a warning`, async () => {
          installed = await InstalledApplication.install(home, manager, application, context);
        });
        // In Node 22.13, an ES module that `require()` loads resolves its imports without PnP.
        const newestOnly = manager === YARN_PNP && application.type === 'commonjs';
        for (const runner of installed === undefined ? [] : newestOnly ? [node] : runners) {
          for (const inbox of ['memory', 'sqlite'] as const) {
            await checks.that(`${title}, ${runner.name}, ${inbox} inbox: handles an event`, () =>
              installed?.handles(runner.path, inbox),
            );
          }
        }
      }
    }
  },
};
