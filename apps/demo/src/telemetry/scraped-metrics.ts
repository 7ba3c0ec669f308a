/** The names of the metrics to print. */
export const PRINTED_METRICS = [
  'payments_events_received_total',
  'payments_events_duplicates_total',
  'payments_requests_rejected_total',
  'payments_attempts_total',
  'payments_process_duration_count',
  'payments_api_call_duration_count',
  'payments_polls_total',
  'payments_expectations_fulfilled_total',
  'payments_store_up',
] as const;

/** The metrics of a process: the sum of the series of each metric, by the name of the metric. */
export type ScrapedMetrics = ReadonlyMap<string, number>;

/** Scrapes a process as Prometheus does. Rejects if the process does not respond with 200. */
export async function scrape(url: string, signal: AbortSignal): Promise<ScrapedMetrics> {
  const response = await fetch(url, { signal });
  if (!response.ok) throw new Error(`GET ${url} returned ${response.status}`);
  return parseMetrics(await response.text());
}

/** Parses the text format of Prometheus, and adds up the series of each metric. */
export function parseMetrics(text: string): ScrapedMetrics {
  const sums = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [, name, value] = /^(\w+)(?:\{.*\})? (\S+)$/.exec(line) ?? [];
    if (name !== undefined) sums.set(name, (sums.get(name) ?? 0) + Number(value));
  }
  return sums;
}

/**
 * Formats the metrics of several processes, with a line per metric and a column per process. A dash means that a
 * process does not have the metric.
 */
export function formatMetrics(processes: readonly (readonly [string, ScrapedMetrics])[]): string[] {
  const line = (first: string, cells: readonly string[]): string =>
    first.padEnd(44) + cells.map((cell) => cell.padStart(10)).join('');
  return [
    line(
      'metric',
      processes.map(([process]) => process),
    ),
    ...PRINTED_METRICS.map((name) =>
      line(
        name,
        processes.map(([, metrics]) => String(metrics.get(name) ?? '-')),
      ),
    ),
  ];
}
