import { checkGenerator } from '../generator-checks.ts';
import { NEST_11, NEST_11_COMMONJS } from '../nest-generator.ts';
import type { SmokePart } from '../smoke-part.ts';

/** Applications that `nest new` of `@nestjs/cli` 11 generates: CommonJS, tested with Jest. */
export const part: SmokePart = {
  description: 'nest new 11: builds, starts, handles a payment, npm test with Jest',
  async run(context, checks) {
    for (const generator of context.all ? [NEST_11, NEST_11_COMMONJS] : [NEST_11]) {
      await checkGenerator('AP-01', generator, context, checks);
    }
  },
};
