/** Tries until what it checks holds; throws what it last threw when 20 s have passed. For what a database must say. */
export async function soon<T>(check: () => Promise<T> | T, withinMs = 20_000): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
