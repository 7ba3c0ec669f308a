import { BY_INDEX } from './schema.claims.js';

/** The setting of a transaction that counts itself what it finishes. */
export const TALLIED = 'payments_inbox.tallied';

/**
 * What was done for each row is done for all of a statement: deliveries go with their events, and a group that is
 * settled is counted as one.
 *
 * There is no foreign key any more. It looked up and locked the event of each delivery that was stored; the
 * statements that store deliveries have just stored their events, or hold them locked. The constraint stays with
 * neither, the cascade does.
 */
export const bulk = (schema: string): string => `
ALTER TABLE ${schema}.deliveries DROP CONSTRAINT IF EXISTS deliveries_event_fkey;
CREATE FUNCTION ${schema}.remove_deliveries() RETURNS trigger LANGUAGE plpgsql ${BY_INDEX}
AS $removal$
BEGIN
  DELETE FROM ${schema}.deliveries d USING gone WHERE d.event = gone.seq;
  RETURN NULL;
END $removal$;
CREATE TRIGGER remove_deliveries AFTER DELETE ON ${schema}.events
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.remove_deliveries();

-- Whatever finishes a delivery, or has it run again, sets finished_at. A claim does not, and pays nothing.
DROP TRIGGER tally_change ON ${schema}.deliveries;
CREATE TRIGGER tally_change AFTER UPDATE OF finished_at ON ${schema}.deliveries FOR EACH ROW
  WHEN (OLD.state <> NEW.state
    AND (OLD.state IN ('done', 'skipped') OR NEW.state IN ('done', 'skipped'))
    AND current_setting('${TALLIED}', true) IS DISTINCT FROM 'yes')
  EXECUTE FUNCTION ${schema}.tally_change();
`;
