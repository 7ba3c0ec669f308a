import { FAULTS } from '../../../libs/emulator/src/faults/fault-plan.ts';
import type { FaultDefinition, FaultField } from '../../../libs/emulator/src/faults/fault-plan.ts';

/** A table of all faults of the emulator: targets, name, own fields and effect. */
export function faultTable(): string {
  const rows = new Map<FaultDefinition, { readonly name: string; readonly targets: string[] }>();
  for (const [target, { faults }] of Object.entries(FAULTS)) {
    const definitions = faults as Readonly<Record<string, FaultDefinition>>;
    for (const [name, fault] of Object.entries(definitions)) {
      const row = rows.get(fault) ?? { name, targets: [] };
      rows.set(fault, row);
      row.targets.push(`\`${target}\``);
    }
  }
  const lines = Array.from(rows, ([fault, { name, targets }]) => {
    const cells = [targets.join(', '), `\`${name}\``, fieldsOf(fault), fault.description];
    return `| ${cells.join(' | ')} |`;
  });
  return ['| Target | Fault | Fields | Effect |', '| --- | --- | --- | --- |', ...lines].join('\n');
}

function fieldsOf({ only, fields = {} }: FaultDefinition): string {
  if (only === true) return 'the value is `true`';
  if (only !== undefined) return `the value is a list: ${only.label}`;
  return Object.entries(fields)
    .map(([name, field]) => `\`${name}\`: ${valuesOf(field)}`)
    .join('; ');
}

function valuesOf({ label, kind, options, required, value }: FaultField): string {
  if (options !== undefined) return options.map((option) => `\`${option}\``).join(', ');
  return required || kind === 'json' || value === undefined ? label : `${label} (\`${value}\`)`;
}
