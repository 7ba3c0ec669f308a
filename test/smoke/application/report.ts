/** Runs a check and prints how it went, in the form that merchant.application.ts reads. */
export async function report(title: string, check: () => unknown): Promise<void> {
  try {
    await check();
    console.log(JSON.stringify({ title }));
  } catch (error) {
    const failure = error instanceof Error ? (error.stack ?? error.message) : String(error);
    console.log(JSON.stringify({ title, failure }));
  }
}
