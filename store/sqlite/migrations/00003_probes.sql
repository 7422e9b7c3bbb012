-- +goose Up

-- What is written to see whether writing works, and removed at once.
CREATE TABLE probes (
    id      TEXT NOT NULL PRIMARY KEY,
    content BLOB NOT NULL
);
