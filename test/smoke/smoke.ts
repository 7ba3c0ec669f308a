/**
 * The packages as somebody gets them: packed, looked at, installed into fresh applications, compiled and run.
 * One line for each check; the last line counts them.
 */
import { rmSync } from 'node:fs';
import { mkdtemp, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Checks } from './checks.ts';
import { ADAPTERS, MERCHANTS } from './merchants.ts';
import { MerchantApplication } from './merchant.application.ts';
import { InstalledCommand } from './installed.command.ts';
import { installOldestNode } from './oldest.node.ts';
import { PackedPackage } from './packed.package.ts';

const root = resolve(import.meta.dirname, '../..');
const checks = new Checks();

/** Packs a package and looks at what is in the tarball. Returns none where it can't be packed. */
async function pack(folder: string, temporary: string): Promise<PackedPackage | undefined> {
  const packed: PackedPackage[] = [];
  await checks.that(`${folder}: npm packs it`, async () => {
    packed.push(await PackedPackage.pack(root, folder, temporary));
  });
  for (const it of packed) {
    const { name } = it.manifest;
    await checks.that(`${name}: the tarball holds its build and nothing else`, () =>
      it.holdsNothingButItsBuild(),
    );
    await checks.that(`${name}: imports what it declares, and declares what it imports`, () =>
      it.importsOnlyWhatItDeclares(),
    );
    await checks.that(`${name}: publint has nothing to say`, () => it.pleasesPublint());
    await checks.that(`${name}: attw resolves every type`, () => it.pleasesAttw());
  }
  return packed[0];
}

/** The Nodes to run on, by what they are called. */
async function nodes(temporary: string): Promise<Map<string, string>> {
  const found = new Map([[`Node ${process.versions.node}`, process.execPath]]);
  await checks.that('the oldest supported Node is there', async () => {
    const [node, version] = await installOldestNode(root, join(temporary, 'oldest-node'));
    found.set(`Node ${version}`, node);
  });
  return found;
}

/** The emulator's command, installed into a folder of its own. */
async function smokeCommand(
  emulator: PackedPackage,
  temporary: string,
  runners: ReadonlyMap<string, string>,
): Promise<void> {
  const { name } = emulator.manifest;
  const installed: InstalledCommand[] = [];
  await checks.that(`${name}: npm installs the command`, async () => {
    installed.push(await InstalledCommand.install(join(temporary, 'command'), emulator));
  });
  for (const command of installed) {
    for (const [version, node] of runners) {
      await checks.that(`${name}, ${version}: prints its help`, () => command.helps(node));
      await checks.that(`${name}, ${version}: starts, serves its pages, and ends`, () =>
        command.serves(node),
      );
    }
  }
}

async function smoke(temporary: string): Promise<void> {
  const payments = await pack('libs/payments', temporary);
  const emulator = await pack('libs/emulator', temporary);
  const runners = await nodes(temporary);
  if (emulator !== undefined) await smokeCommand(emulator, temporary, runners);
  if (payments === undefined) return;
  for (const [index, merchant] of MERCHANTS.entries()) {
    const { name } = merchant;
    const installed: MerchantApplication[] = [];
    await checks.that(`${name}: npm installs it without overriding a peer`, async () => {
      const folder = join(temporary, `merchant-${index}`);
      installed.push(await MerchantApplication.install(merchant, folder, payments));
    });
    for (const application of installed) {
      await checks.that(`${name}: every peer is there, in one copy`, () =>
        application.hasAllPeers(),
      );
      for (const [version, node] of runners) {
        await checks.that(
          `${name}, ${version}: imports, and without an adapter or a database`,
          () => application.imports(node),
        );
      }
      const compiled = await checks.that(
        `${name}: compiles, the package's own declarations included`,
        async () => {
          const foreign = await application.compiles();
          if (foreign.length > 0) {
            console.log(`     ${foreign.length} errors are not ours, the first: ${foreign[0]}`);
          }
        },
      );
      if (!compiled) continue;
      for (const [version, node] of runners) {
        for (const adapter of ADAPTERS) {
          await application.runs(adapter, node, `${name}, ${version}, ${adapter}`, checks);
        }
      }
    }
  }
}

const temporary = await mkdtemp(join(await realpath(tmpdir()), 'nestjs-payments-smoke-'));
// However it ends: done, interrupted, or with nobody left to read what it prints.
process.once('exit', () => rmSync(temporary, { recursive: true, force: true, maxRetries: 3 }));
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
await smoke(temporary);
console.log(checks.summary);
process.exitCode = checks.failed ? 1 : 0;
