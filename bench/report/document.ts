import type { Results } from './results.ts';
export async function writeDocument(_results: Results): Promise<void> {}
