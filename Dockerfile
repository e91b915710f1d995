# temp_parallel in the official image of PostgreSQL, for trying it out:
#
#   docker build -t temp_parallel .             # --build-arg PG_MAJOR=17: another version
#   docker run --rm -d --name tp --shm-size=256m -e POSTGRES_PASSWORD=secret temp_parallel
#   docker exec -it tp psql -U postgres
#
# Every session has the module loaded; other arguments for the server replace that setting,
# so repeat it: docker run ... temp_parallel -c session_preload_libraries=temp_parallel -c ...
# Parallel queries need more shared memory than
# the 64 MB that a container has by default. script/packaging runs these commands in a
# chroot.
ARG PG_MAJOR=18

FROM postgres:$PG_MAJOR AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
	gcc libc6-dev make postgresql-server-dev-$PG_MAJOR
COPY . /src
RUN make -C /src install with_llvm=no DESTDIR=/built \
	PG_CONFIG=/usr/lib/postgresql/$PG_MAJOR/bin/pg_config

FROM postgres:$PG_MAJOR
COPY --from=build /built /
RUN echo 'CREATE EXTENSION temp_parallel;' >/docker-entrypoint-initdb.d/temp_parallel.sql
CMD ["postgres", "-c", "session_preload_libraries=temp_parallel"]
