-- +goose Up

-- Numbers of threads are never given twice.
CREATE TABLE threads (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant   TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    messages INTEGER NOT NULL,
    plans    INTEGER NOT NULL,
    events   INTEGER NOT NULL,
    created  INTEGER NOT NULL, -- nanoseconds since 1970
    changed  INTEGER NOT NULL,
    UNIQUE (tenant, name)
);

CREATE TABLE messages (
    thread   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    id       TEXT    NOT NULL,
    content  BLOB    NOT NULL,
    PRIMARY KEY (thread, position)
);

CREATE TABLE plans (
    thread  INTEGER NOT NULL,
    version INTEGER NOT NULL,
    created INTEGER NOT NULL,
    content BLOB    NOT NULL,
    PRIMARY KEY (thread, version)
);

CREATE TABLE marks (
    thread   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    PRIMARY KEY (thread, position)
) WITHOUT ROWID;

CREATE TABLE events (
    thread   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    at       INTEGER NOT NULL, -- seconds since 1970
    content  BLOB    NOT NULL,
    PRIMARY KEY (thread, position)
);

-- A removed document has no content; its version goes on counting.
CREATE TABLE documents (
    tenant  TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    version INTEGER NOT NULL,
    content BLOB    NOT NULL,
    PRIMARY KEY (tenant, kind, id)
);
CREATE INDEX documents_by_id ON documents (tenant, id);

CREATE TABLE summaries (
    tenant  TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    created INTEGER NOT NULL,
    content BLOB    NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Content is in the row, or in the file that body names.
CREATE TABLE artifacts (
    tenant   TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    thread   TEXT    NOT NULL,
    metadata BLOB    NOT NULL,
    checksum INTEGER NOT NULL, -- CRC-32C of the content
    body     TEXT    NOT NULL,
    content  BLOB,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX artifacts_by_thread ON artifacts (tenant, thread);
