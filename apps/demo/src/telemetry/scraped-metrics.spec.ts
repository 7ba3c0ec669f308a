import { expect, it } from '@jest/globals';
import { formatMetrics, parseMetrics } from './scraped-metrics.js';

const TEXT = `# HELP payments_events_received_total New events
# TYPE payments_events_received_total counter
payments_events_received_total{payments_source="webhook",payments_event_type="transaction.completed"} 12
payments_events_received_total{payments_source="poll",payments_event_type="a } 7"} 3
payments_store_up 1
payments_process_duration_bucket{le="+Inf"} 4
`;

it('TE-09 formatMetrics() prints each metric of each process as the sum of its series', () => {
  const metrics = parseMetrics(TEXT);
  expect(Object.fromEntries(metrics)).toEqual({
    payments_events_received_total: 15,
    payments_store_up: 1,
    payments_process_duration_bucket: 4,
  });
  const lines = formatMetrics([
    ['shop 1', metrics],
    ['shop 2', new Map()],
  ]);
  expect(lines.slice(0, 2)).toEqual([
    'metric                                          shop 1    shop 2',
    'payments_events_received_total                      15         -',
  ]);
});
