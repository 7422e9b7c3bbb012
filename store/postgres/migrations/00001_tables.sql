-- +goose Up

-- Numbers of threads are never given twice.
CREATE TABLE threads (
    number   BIGINT  PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    tenant   TEXT COLLATE "C" NOT NULL,
    name     TEXT COLLATE "C" NOT NULL,
    messages BIGINT  NOT NULL,
    plans    BIGINT  NOT NULL,
    events   BIGINT  NOT NULL,
    created  BIGINT  NOT NULL, -- nanoseconds since 1970
    changed  BIGINT  NOT NULL,
    UNIQUE (tenant, name)
);

CREATE TABLE messages (
    thread   BIGINT  NOT NULL,
    position BIGINT  NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,
    content  BYTEA   NOT NULL,
    PRIMARY KEY (thread, position)
);

CREATE TABLE plans (
    thread  BIGINT  NOT NULL,
    version BIGINT  NOT NULL,
    created BIGINT  NOT NULL,
    content BYTEA   NOT NULL,
    PRIMARY KEY (thread, version)
);

CREATE TABLE marks (
    thread   BIGINT  NOT NULL,
    position BIGINT  NOT NULL,
    version  BIGINT  NOT NULL,
    PRIMARY KEY (thread, position)
);

CREATE TABLE events (
    thread   BIGINT  NOT NULL,
    position BIGINT  NOT NULL,
    at       BIGINT  NOT NULL, -- seconds since 1970
    content  BYTEA   NOT NULL,
    PRIMARY KEY (thread, position)
);

-- A removed document has no content; its version goes on counting.
CREATE TABLE documents (
    tenant  TEXT COLLATE "C" NOT NULL,
    kind    TEXT COLLATE "C" NOT NULL,
    id      TEXT COLLATE "C" NOT NULL,
    version BIGINT  NOT NULL,
    content BYTEA   NOT NULL,
    PRIMARY KEY (tenant, kind, id)
);
CREATE INDEX documents_by_id ON documents (tenant, id);

CREATE TABLE summaries (
    tenant  TEXT COLLATE "C" NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,
    created BIGINT  NOT NULL,
    content BYTEA   NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- The column body is for stores that keep large contents in files; here it is empty.
CREATE TABLE artifacts (
    tenant   TEXT COLLATE "C" NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,
    thread   TEXT COLLATE "C" NOT NULL,
    metadata BYTEA   NOT NULL,
    checksum BIGINT  NOT NULL, -- CRC-32C of the content
    body     TEXT COLLATE "C" NOT NULL,
    content  BYTEA,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX artifacts_by_thread ON artifacts (tenant, thread);
