import { checkGenerator } from '../generator-checks.ts';
import { NEST_12 } from '../nest-generator.ts';
import type { SmokePart } from '../smoke-part.ts';

/** An application that `nest new` of `@nestjs/cli` 12 generates: ES modules, tested with Vitest. */
export const part: SmokePart = {
  description: 'nest new 12: builds, starts, handles a payment, npm test with Vitest',
  run: (context, checks) => checkGenerator('AP-02', NEST_12, context, checks),
};
