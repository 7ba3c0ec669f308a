/** The version of this package. `npm run release -- --version` sets it. */
export const VERSION = '0.1.0';
