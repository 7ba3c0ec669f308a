/**
 * Counting a million finished deliveries takes a tenth of a second, and statistics are scraped every few. So
 * each change to or from a finished state leaves a row with its difference, and the sum is the count. Rows
 * are only added: a counter that all transactions update would have them wait for each other. Pruning and
 * statistics fold the rows together.
 */
export const tallies = (schema: string): string => `
CREATE TABLE ${schema}.tallies (
  handler text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  delta bigint NOT NULL
);

CREATE FUNCTION ${schema}.tally_change() RETURNS trigger LANGUAGE plpgsql AS $tally$
BEGIN
  INSERT INTO ${schema}.tallies (handler, state, delta)
  SELECT t.handler, t.state, t.delta
    FROM (VALUES (OLD.handler, OLD.state, -1), (NEW.handler, NEW.state, 1)) AS t (handler, state, delta)
   WHERE t.state IN ('done', 'skipped');
  RETURN NULL;
END $tally$;
CREATE TRIGGER tally_change AFTER UPDATE ON ${schema}.deliveries FOR EACH ROW
  WHEN (OLD.state <> NEW.state
    AND (OLD.state IN ('done', 'skipped') OR NEW.state IN ('done', 'skipped')))
  EXECUTE FUNCTION ${schema}.tally_change();

CREATE FUNCTION ${schema}.tally_removal() RETURNS trigger LANGUAGE plpgsql AS $tally$
BEGIN
  INSERT INTO ${schema}.tallies (handler, state, delta)
  SELECT g.handler, g.state, -count(*)
    FROM gone g WHERE g.state IN ('done', 'skipped') GROUP BY g.handler, g.state;
  RETURN NULL;
END $tally$;
CREATE TRIGGER tally_removal AFTER DELETE ON ${schema}.deliveries
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION ${schema}.tally_removal();

CREATE FUNCTION ${schema}.tally_unhandled() RETURNS trigger LANGUAGE plpgsql AS $tally$
BEGIN
  INSERT INTO ${schema}.tallies (handler, state, delta)
  VALUES ('', 'unhandled', CASE WHEN TG_OP <> 'DELETE' AND NEW.unhandled THEN 1 ELSE -1 END);
  RETURN NULL;
END $tally$;
CREATE TRIGGER tally_unhandled_insert AFTER INSERT ON ${schema}.events FOR EACH ROW
  WHEN (NEW.unhandled) EXECUTE FUNCTION ${schema}.tally_unhandled();
CREATE TRIGGER tally_unhandled_update AFTER UPDATE ON ${schema}.events FOR EACH ROW
  WHEN (OLD.unhandled <> NEW.unhandled) EXECUTE FUNCTION ${schema}.tally_unhandled();
CREATE TRIGGER tally_unhandled_delete AFTER DELETE ON ${schema}.events FOR EACH ROW
  WHEN (OLD.unhandled) EXECUTE FUNCTION ${schema}.tally_unhandled();
`;
