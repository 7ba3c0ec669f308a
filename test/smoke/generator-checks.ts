import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../support/processes/free-port.ts';
import type { Checks } from './checks.ts';
import { GeneratedApplication } from './generated-application.ts';
import type { Adapter } from './generated-application.ts';
import type { NestGenerator } from './nest-generator.ts';
import type { SmokeContext } from './smoke-part.ts';
import { readTestRecipes } from './test-recipes.ts';

/**
 * Checks that a generated application builds, starts and handles a payment with the code of the quick start, and that its
 * test scripts pass. With `--all`, checks every builder and adapter and every recipe of `docs/testing.md`, also on the
 * oldest Node.
 *
 * @param promise the id that the titles start with
 */
export async function checkGenerator(
  promise: string,
  generator: NestGenerator,
  context: SmokeContext,
  checks: Checks,
): Promise<void> {
  const { all, node } = context;
  const nodes = all ? [node, await context.oldestNode()] : [node];
  const adapters: Adapter[] = all ? ['express', 'fastify'] : ['express'];
  const builders = Object.keys(generator.builders).slice(0, all ? undefined : 1);
  const recipes = (await readTestRecipes(context.root, generator)).slice(0, all ? undefined : 1);
  const tools = [
    ...builders.flatMap((builder) => generator.builders[builder]!),
    ...recipes.flatMap((recipe) => recipe.tools),
  ];
  const folder = join(context.folder, generator.name.replaceAll(/\W+/g, '-'));
  await mkdir(folder);
  const app = await GeneratedApplication.create(generator, folder, context, tools);
  const port = await freePort();
  const emulator = await app.startEmulator(port);
  await using _process = emulator.process;

  for (const builder of builders) {
    for (const adapter of adapters) {
      const title = `${promise} ${generator.name}, ${builder}, ${adapter}`;
      const built = await checks.that(`${title}: builds`, () => app.build(builder, adapter));
      for (const runner of built ? nodes : []) {
        await checks.that(`${title}, ${runner.name}: starts and handles a payment`, () =>
          app.handlesPayment(port, emulator.baseUrl, runner),
        );
      }
    }
  }

  for (const recipe of recipes) {
    if (recipe.config) await app.configureJest(recipe.config);
    for (const runner of nodes.filter(recipe.fits)) {
      for (const script of ['test', 'test:e2e'] as const) {
        await checks.that(
          `${promise} ${generator.name}, ${recipe.name}, ${runner.name}: npm run ${script}`,
          () => app.test(script, runner, recipe.env),
        );
      }
    }
  }
}
