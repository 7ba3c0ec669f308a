import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join(import.meta.dirname, '../../../docs/monitoring');

/** A PromQL expression of `docs/monitoring`, with the names that it contains. */
export interface Expression {
  /** The panel or the alert to which the expression belongs. */
  readonly of: string;
  readonly text: string;
  readonly metrics: readonly string[];
  readonly labels: readonly string[];
  /** Compared values, for example `dead` of `payments_state="dead"`. */
  readonly values: readonly string[];
}

/** The expressions of all panels of the dashboard. */
export function dashboardExpressions(): Expression[] {
  const { panels } = JSON.parse(readFileSync(join(FOLDER, 'dashboard.json'), 'utf8')) as {
    panels: { title: string; targets: { expr: string }[] }[];
  };
  return panels.flatMap(({ title, targets }) => targets.map(({ expr }) => parsed(title, expr)));
}

/** An alert of `alerts.yml`. */
export interface Alert extends Expression {
  readonly summary: string;
  readonly description: string;
  readonly runbook: string;
}

/** The alerts, in the order of the file. */
export function alerts(): Alert[] {
  const text = readFileSync(join(FOLDER, 'alerts.yml'), 'utf8');
  return text
    .split('- alert: ')
    .slice(1)
    .map((alert) => {
      const [name] = alert.split('\n');
      const expr = /expr: (?:\|\n((?: {10,}.*\n)+)|(.+)\n)/.exec(alert);
      const field = (key: string) => new RegExp(`${key}: (.+)`).exec(alert)?.[1] ?? '';
      const expression = parsed(name!.trim(), expr?.[1] ?? expr?.[2] ?? '');
      return {
        ...expression,
        summary: field('summary'),
        description: field('description'),
        runbook: field('runbook_url'),
      };
    });
}

function parsed(of: string, text: string): Expression {
  const matchers = [...text.matchAll(/\{([^}]*)\}/g)].map(([, one]) => one!);
  const matched = matchers.flatMap((one) => [...one.matchAll(/(\w+)(?:=~|!=|!~|=)"([^"]*)"/g)]);
  const grouped = [...text.matchAll(/by \(([^)]*)\)/g)].flatMap(([, one]) => one!.split(/,\s*/));
  const rest = text.replace(/\{[^}]*\}|by \([^)]*\)/g, '');
  return {
    of,
    text,
    metrics: [...rest.matchAll(/\bpayments_\w+/g)].map(([name]) => name),
    labels: [...matched.map(([, label]) => label!), ...grouped].filter((label) => label !== 'le'),
    values: matched.flatMap(([, , value]) => value!.split('|')).filter((value) => value !== ''),
  };
}
